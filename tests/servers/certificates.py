"""Certificates of an authority that nobody knows, for servers on this machine."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """bundle: its own certificate, in PEM."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("Tests' own authority")
        self._certificate = self._signed(self._name, self._key, 3650, is_authority=True)
        self.bundle = _pem(self._certificate)

    def context_for(
        self, folder: Any, days: int = 365, names: tuple[str, ...] = ("localhost",)
    ) -> ssl.SSLContext:
        """What a server on 127.0.0.1 needs. days: until its certificate ends; it may have.

        names: that the certificate is for; the address is one of them when "localhost" is.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(_name(names[0]), key, days, is_authority=False, names=names)
        return _serving(folder, certificate, key)

    def self_signed(self, folder: Any) -> ssl.SSLContext:
        """A server that presents the authority's own certificate as its own."""
        return _serving(folder, self._certificate, self._key)

    def _signed(
        self,
        subject: Any,
        key: Any,
        days: int,
        *,
        is_authority: bool,
        names: tuple[str, ...] = ("localhost",),
    ) -> Any:
        now = datetime.now(UTC)
        known: list[x509.GeneralName] = [x509.DNSName(each) for each in names]
        if "localhost" in names:
            known.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=30))
            .not_valid_after(now + timedelta(days=days, hours=1))
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
            .add_extension(x509.SubjectAlternativeName(known), critical=False)
        )
        return builder.sign(self._key, hashes.SHA256())


def _serving(folder: Any, certificate: Any, key: Any) -> ssl.SSLContext:
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = folder / "server.pem"
    path.write_text(_pem(certificate) + private.decode())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


def _name(text: str) -> Any:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(certificate: Any) -> str:
    pem: str = certificate.public_bytes(serialization.Encoding.PEM).decode()
    return pem
