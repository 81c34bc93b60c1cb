"""What can go wrong in this app's shell.

ConnectorError
└── SecretUnreadable
"""

from __future__ import annotations


class ConnectorError(Exception):
    """A connector cannot do what was asked."""

    def __str__(self) -> str:
        return super().__str__() or (self.__doc__ or "").partition("\n")[0]


class SecretUnreadable(ConnectorError):
    """A stored secret cannot be decrypted: its key is not among SECRETS_KEYS any more."""
