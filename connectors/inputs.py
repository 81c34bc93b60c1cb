"""What people type about a server: its address, headers and token, each checked in words for them.

Pure.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

from connectors.protocol.text import flatten

IPAddress = IPv4Address | IPv6Address

MAX_URL_CHARS: Final = 2_048
MAX_VALUE_CHARS: Final = 8_000
MAX_BUNDLE_CHARS: Final = 64 * 1024

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE: Final = re.compile(r"[\t -~]*")
_TOKEN: Final = re.compile(r"[!-~]+")
_CERTIFICATE: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----"
)
# The transport says these itself.
_TRANSPORT_HEADERS: Final = frozenset(
    {"accept", "connection", "content-length", "content-type", "host", "transfer-encoding"}
)
# Direction overrides and isolates: in a name they could only make a page lie.
_OVERRIDES: Final = re.compile("[\u202a-\u202e\u2066-\u2069]")


def clean_name(text: str) -> str:
    """A connector's name as one line, without characters that reorder what stands beside it."""
    return flatten(_OVERRIDES.sub("", text))


def problem_of_address(url: str, is_allowed: Callable[[IPAddress], bool]) -> str | None:
    """Why an address cannot be a server's, or None. It may hold `{variables}`.

    is_allowed: for literal addresses, which can be judged now. A name is judged when it is dialled.
    """
    if len(url) > MAX_URL_CHARS:
        return f"The address is longer than {MAX_URL_CHARS} characters."
    if not _TOKEN.fullmatch(url):
        return "The address has spaces or characters that an address cannot have."
    parts = _split(url)
    if parts is None or parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        return "Enter an address that starts with https:// or http://, with a host behind it."
    if "@" in parts.netloc:
        return "Leave the user name and password out: enter a token or a header instead."
    if "#" in url:
        return "Leave out the # and what follows it: a server never sees that."
    literal = _literal(parts.hostname)
    if literal is not None and not is_allowed(literal):
        return (
            f"{parts.hostname} is not a public address. Who runs this host can allow its network "
            "(CONNECTOR_ALLOWED_NETWORKS)."
        )
    return None


def origin_of(url: str) -> str:
    """The scheme, host and port of an address: who gets what is sent to it."""
    parts = _split(url)
    return f"{parts.scheme}://{parts.netloc}".lower() if parts else ""


def host_of(url: str) -> str:
    """The host and port of an address, for lists."""
    parts = _split(url)
    return parts.netloc.rpartition("@")[2] if parts else ""


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port  # Raises where there is none that can be.
    except ValueError:
        return None
    return parts


def _literal(host: str) -> IPAddress | None:
    """The IP address that a host is, in any spelling that a resolver takes for one."""
    if host == "localhost" or host.endswith(".localhost"):
        host = "127.0.0.1"
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        try:
            return IPv4Address(socket.inet_aton(host))
        except OSError:
            return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def problem_of_header(name: str, value: str) -> str | None:
    """Why a header cannot be sent, or None."""
    if not _HEADER_NAME.fullmatch(name):
        return "A header's name has letters, digits and hyphens only."
    if name.lower() in _TRANSPORT_HEADERS or name.lower().startswith("mcp-"):
        return f"{name} belongs to the connection itself."
    return problem_of_value(value)


def problem_of_value(value: str) -> str | None:
    """Why a secret cannot be sent, or None. The words hold nothing of it."""
    if len(value) > MAX_VALUE_CHARS:
        return f"The value is longer than {MAX_VALUE_CHARS} characters."
    if not _HEADER_VALUE.fullmatch(value):
        return "The value has line breaks or characters that cannot be sent."
    return None


def clean_bundle(text: str) -> str:
    """The certificates alone: bundles come with comments in every language between them."""
    text = text.replace("\r\n", "\n").strip()
    found = _CERTIFICATE.findall(text)
    return text if not found or "PRIVATE KEY" in text else "\n".join(found)


def problem_of_bundle(text: str) -> str | None:
    """Why a CA bundle cannot be used, or None. An empty one is none."""
    if "PRIVATE KEY" in text:
        return "This holds a private key, which stays with its owner. Enter certificates only."
    if len(text) > MAX_BUNDLE_CHARS:
        return f"The CA bundle is longer than {MAX_BUNDLE_CHARS // 1024} KiB."
    if not text:
        return None
    refusal = "The CA bundle is not certificates in PEM (-----BEGIN CERTIFICATE-----)."
    if not text.isascii():
        return refusal
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        return refusal
    return None


def clean_token(text: str) -> str:
    """A bearer token as people paste it, often with the word in front."""
    return re.sub(r"(?i)\Abearer\s+", "", text.strip())


def problem_of_token(token: str) -> str | None:
    """Why a bearer token cannot be sent, or None. The words hold nothing of it."""
    if len(token) > MAX_VALUE_CHARS:
        return f"The token is longer than {MAX_VALUE_CHARS} characters."
    if not _TOKEN.fullmatch(token):
        return "The token has spaces or characters that cannot be sent."
    return None
