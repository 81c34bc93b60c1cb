"""Model fields for what servers say and for what nobody may read at rest."""

from __future__ import annotations

import json
from typing import Any

from django.db import models

from connectors import credentials


class ExactJSONField(models.TextField):  # type: ignore[type-arg]
    """Any JSON value exactly as it came: key order, NUL and lone surrogates included.

    PostgreSQL's jsonb keeps no key order and its text takes neither of the two characters, so the
    value is stored as ASCII JSON text. It cannot be searched, and need not be.
    """

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else json.dumps(value, ensure_ascii=True)

    def from_db_value(self, value: str | None, *_: object) -> Any:
        return None if value is None else json.loads(value)

    def to_python(self, value: Any) -> Any:
        return value


class EncryptedField(models.BinaryField):  # type: ignore[type-arg]
    """A short text that is encrypted at rest with the first of `SECRETS_KEYS`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("editable", False)
        super().__init__(*args, **kwargs)

    def get_prep_value(self, value: Any) -> bytes | None:
        return None if value is None else credentials.encrypt(value)

    def from_db_value(self, value: bytes | None, *_: object) -> str | None:
        return None if value is None else credentials.decrypt(bytes(value))

    def to_python(self, value: Any) -> Any:
        return value

    def value_to_string(self, obj: models.Model) -> str:
        raise TypeError("Secrets are not serialised.")
