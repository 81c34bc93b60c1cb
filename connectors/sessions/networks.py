"""Which addresses are public, by the registries themselves and not by the Python that runs. Pure.

Source: IANA, "IPv4 Special-Purpose Address Registry" and "IPv6 Special-Purpose Address Registry";
RFC 4291, section 2.4.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

NAT64: Final = IPv6Network("64:ff9b::/96")
"""Public as far as the IPv4 address in it is: `guard.meanings` gives that one too."""

_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_SPECIAL_6: Final = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "3fff::/20")))
_SPECIAL_4: Final = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
        # Looks public, and is the platform's own address inside of Azure: learn.microsoft.com,
        # "What is IP address 168.63.129.16?".
        "168.63.129.16/32",
    )
)


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether anybody may have that address. What is not known to be public is not."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_4)
    if address in NAT64:
        return True
    return address in _GLOBAL_UNICAST and not any(address in network for network in _SPECIAL_6)
