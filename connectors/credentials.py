"""Encrypt at rest, decrypt late, never log."""

from __future__ import annotations

from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from connectors.errors import SecretUnreadable


@lru_cache(maxsize=4)
def _box(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])


def encrypt(text: str) -> bytes:
    """Encrypt with the first of `settings.SECRETS_KEYS`."""
    return _box(tuple(settings.SECRETS_KEYS)).encrypt(text.encode())


def decrypt(sealed: bytes) -> str:
    """Decrypt with whichever of `settings.SECRETS_KEYS` fits.

    Raises: SecretUnreadable when none does (a key was taken away before the secrets were rotated).
    """
    try:
        return _box(tuple(settings.SECRETS_KEYS)).decrypt(sealed).decode()
    except InvalidToken:
        raise SecretUnreadable from None
