"""A connector's whole form, out of its parts: itself, its secrets, new headers, its placements."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from connectors.declared import (
    Declared,
    as_entry,
    as_json,
    declared_by,
    filled,
    from_json,
    to_fill_in,
)
from connectors.errors import SecretUnreadable
from connectors.forms import ConnectorForm, HeaderRows, PlacementRows, SecretsForm
from connectors.inputs import origin_of
from connectors.inspection import SecretLine, secret_lines
from connectors.models import Connector, Secret, SecretKind, Transport
from connectors.protocol.server_json import ServerDescription, parse_server_json
from workspaces.models import User, Workspace


class Sheet:
    """Bound when there is data. What was typed stays on the page, except for secrets."""

    def __init__(
        self,
        whose: Workspace | User,
        data: Any = None,
        *,
        connector: Connector | None = None,
        declared: list[Declared] | None = None,
        initial: dict[str, Any] | None = None,
    ) -> None:
        self.connector = connector or new_connector(whose)
        self.declared = from_json(self.connector.required) if declared is None else declared
        stored = connector is not None
        lines = secret_lines(self.connector) if stored else _new_lines(self.declared)
        first = {
            "name": self.connector.name,
            "url": self.connector.url,
            "transport": self.connector.transport,
            "command": self.connector.command,
            "ca_bundle": self.connector.ca_bundle,
            "placements": self.connector.placements,
        } | (initial or {})
        self.main = ConnectorForm(data, whose=whose, connector=connector, initial=first)
        self.secrets = SecretsForm(data, lines=lines)
        self.headers = HeaderRows(data, prefix="headers")
        self.placements = PlacementRows(data, prefix="placements", initial=first["placements"])

    @property
    def parts(self) -> list[Any]:
        return [self.main, self.secrets, self.headers, self.placements]

    def is_valid(self) -> bool:
        # Each part is looked at, so that every error shows at once.
        outcomes = [each.is_valid() for each in self.parts]
        if not all(outcomes):
            return False
        self._check_names()
        self._check_origin()
        return not (self.main.errors or self.secrets.errors)

    def _check_names(self) -> None:
        names = [name.lower() for name, _ in self._new_headers()]
        names += [
            "authorization"
            if line.declared.kind == SecretKind.BEARER
            else line.declared.name.lower()
            for line in self.secrets.lines
            if line.declared.kind != SecretKind.VARIABLE and self._is_set_after(line)
        ]
        for name in sorted({name for name in names if names.count(name) > 1}):
            text = f"The header {name} is given more than once."
            if name == "authorization":
                text += " A token is sent as that header."
            self.main.add_error(None, text)

    def _check_origin(self) -> None:
        is_kept = any(
            line.stored and not self.secrets.value_of(line) and not self.secrets.is_cleared(line)
            for line in self.secrets.lines
        )
        if is_kept and self._origin_before() != self._origin_after():
            # Otherwise an address of one's own would reveal what nobody can read here.
            self.main.add_error(
                "url",
                "This address leads to another server. What is set below was meant for "
                f"{origin_of(self.connector.url)}: enter it again or clear it.",
            )

    def _origin_before(self) -> str:
        """Of the stored address. Part of it can be a secret: never shown."""
        return origin_of(filled(self.connector.url, self._variables()))

    def _origin_after(self) -> str:
        entered = {
            line.declared.name: value
            for line in self.secrets.lines
            if line.declared.kind == SecretKind.VARIABLE and (value := self._value_of(line))
        }
        return origin_of(filled(self.main.cleaned_data["url"], self._variables() | entered))

    def _variables(self) -> dict[str, str]:
        stored = self.connector.secrets.filter(kind=SecretKind.VARIABLE)
        try:
            return {each.name: each.value for each in stored}
        except SecretUnreadable:
            return {}  # Nothing is sent with it, until all of them have been entered again.

    def _is_set_after(self, line: SecretLine) -> bool:
        is_kept = line.stored is not None and not self.secrets.is_cleared(line)
        return is_kept or bool(self._value_of(line))

    def _value_of(self, line: SecretLine) -> str:
        # A value that the server declared holds where nobody entered another one.
        default = line.declared.default if line.stored is None else ""
        return self.secrets.value_of(line) or default

    def _new_headers(self) -> Iterator[tuple[str, str]]:
        for row in self.headers.cleaned_data:
            if row.get("name"):
                yield row["name"], row["value"]

    def filled_in(self) -> Connector:
        """The connector as the form has it, not saved."""
        connector, entered = self.connector, self.main.cleaned_data
        connector.name, connector.url = entered["name"], entered["url"]
        connector.transport = entered.get("transport", Transport.HTTP)
        connector.command = entered["command"]
        connector.ca_bundle = entered["ca_bundle"]
        connector.placements = [entry for form in self.placements if (entry := form.entry())]
        connector.required = as_json(self.declared)
        return connector

    def new_secrets(self) -> list[Secret]:
        found = [
            Secret(kind=line.declared.kind, name=line.declared.name, value=value)
            for line in self.secrets.lines
            if (value := self._value_of(line))
        ]
        headers = self._new_headers()
        return found + [
            Secret(kind=SecretKind.HEADER, name=name, value=text) for name, text in headers
        ]

    def cleared(self) -> list[Secret]:
        return [
            line.stored
            for line in self.secrets.lines
            if line.stored is not None and self.secrets.is_cleared(line)
        ]

    def problems(self) -> list[tuple[str, str]]:
        """Every error as (id of its field, words), for the summary above the form."""
        forms = [self.main, self.secrets, *self.headers, *self.placements]
        found = [
            (form[name].id_for_label if name != "__all__" else "", str(text))
            for form in forms
            if form.is_bound
            for name, texts in form.errors.items()
            for text in texts
        ]
        for rows in (self.headers, self.placements):
            found += [("", str(text)) for text in rows.non_form_errors()]
        return found


def new_connector(whose: Workspace | User) -> Connector:
    """A connector of a workspace or of a person, not saved."""
    if isinstance(whose, User):
        return Connector(owner=whose)
    return Connector(workspace=whose)


def _new_lines(declared: list[Declared]) -> list[SecretLine]:
    token = Declared(str(SecretKind.BEARER), "token", "Bearer token", is_required=False)
    asked = to_fill_in("", declared)
    return [SecretLine(each, each.is_required, None) for each in [token, *asked]]


def described(text: str) -> ServerDescription | None:
    """What the server.json says that the form carried along; None for one that says nothing."""
    try:
        found = parse_server_json(json.loads(text))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, ServerDescription) else None


def initial_of(description: ServerDescription, text: str) -> dict[str, Any]:
    """The form's first contents out of a server.json."""
    return {
        "name": description.title,
        "url": description.url,
        "placements": [as_entry(each) for each in description.placements],
        "server_json": text,
    }


def declared_in(description: ServerDescription | None) -> list[Declared]:
    return declared_by(description) if description else []
