"""What people fill in about a connector. Secrets go in and never come out again."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.conf import settings

from connectors.inputs import (
    clean_bundle,
    clean_name,
    clean_token,
    problem_of_address,
    problem_of_bundle,
    problem_of_header,
    problem_of_token,
    problem_of_value,
)
from connectors.inspection import SecretLine
from connectors.models import Connector, SecretKind, Transport
from connectors.protocol.placements import parse_placements
from connectors.protocol.server_json import Refusal, ServerDescription, parse_server_json
from connectors.protocol.text import is_blank
from connectors.queries import connectors_of
from connectors.runtime import is_allowed_address
from workspaces.models import User, Workspace

MAX_SERVER_JSON_BYTES = 256 * 1024
MAX_ROWS = 32
PASSWORD = {"autocomplete": "new-password", "spellcheck": "false"}
PLAIN = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}


class ConnectorForm(forms.Form):
    """The connector itself."""

    name = forms.CharField(
        max_length=100,
        error_messages={"required": "Enter a name."},
        widget=forms.TextInput({"autocomplete": "off"}),
    )
    transport = forms.ChoiceField(choices=Transport.choices)
    url = forms.CharField(
        label="Address",
        required=False,
        help_text="Of its MCP endpoint, for example https://mail.example.com/mcp.",
        widget=forms.TextInput({**PLAIN, "inputmode": "url"}),
    )
    command = forms.ChoiceField(label="Program", required=False)
    ca_bundle = forms.CharField(
        label="CA bundle",
        required=False,
        help_text="Certificates in PEM of an authority of your own, which this server's "
        "certificate comes from. Trusted for this connector alone, besides the usual ones.",
        widget=forms.Textarea({**PLAIN, "rows": 4}),
    )
    # Carries an imported file along, with what it declares, until the connector is added.
    server_json = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(
        self,
        data: Any = None,
        *,
        whose: Workspace | User,
        connector: Connector | None = None,
        initial: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(data, initial=initial)
        self.others = connectors_of(whose)
        if connector is not None:
            self.others = self.others.exclude(pk=connector.pk)
        # Programs run on the host: admins choose among those of the operator.
        if settings.STDIO_SERVERS and isinstance(whose, Workspace):
            names = [(name, name) for name in settings.STDIO_SERVERS]
            self.fields["command"].choices = [("", "–"), *names]  # type: ignore[attr-defined]
        else:
            del self.fields["transport"], self.fields["command"]

    def clean_name(self) -> str:
        name = clean_name(self.cleaned_data["name"])
        if is_blank(name):
            raise forms.ValidationError("Enter a name.")
        if self.others.filter(name__iexact=name).exists():
            raise forms.ValidationError(f"Another connector is named {name} already.")
        return name

    def clean_ca_bundle(self) -> str:
        bundle = clean_bundle(self.cleaned_data["ca_bundle"])
        if problem := problem_of_bundle(bundle):
            raise forms.ValidationError(problem)
        return bundle

    def clean(self) -> dict[str, Any]:
        cleaned = self.cleaned_data
        if cleaned.get("transport") == Transport.STDIO:
            cleaned["url"] = ""
            if not cleaned.get("command"):
                self.add_error("command", "Choose a program.")
            return cleaned
        cleaned["command"] = ""
        address = cleaned.get("url", "")
        problem = problem_of_address(address, is_allowed_address)
        if not address and "url" not in self.errors:
            problem = "Enter the address of its MCP endpoint."
        if problem:
            self.add_error("url", problem)
        return cleaned


class SecretsForm(forms.Form):
    """One field for each value that can be set, empty also where one is set: write-only."""

    def __init__(self, data: Any = None, *, lines: list[SecretLine]) -> None:
        super().__init__(data, prefix="secret")
        self.lines = lines
        for line in lines:
            self.fields[_key(line)] = _secret_field(line)
            if line.stored is not None:
                self.fields[f"clear-{_key(line)}"] = forms.BooleanField(
                    label="Clear it", required=False
                )

    def rows(self) -> list[dict[str, Any]]:
        """For the template: each line with its field and, where a value is set, its tick box."""
        return [
            {
                "line": line,
                "field": self[_key(line)],
                "clear": self[f"clear-{_key(line)}"] if line.stored else None,
            }
            for line in self.lines
        ]

    def value_of(self, line: SecretLine) -> str:
        """The new value; empty when none was entered."""
        value: str = self.cleaned_data.get(_key(line), "")
        return value

    def is_cleared(self, line: SecretLine) -> bool:
        return bool(self.cleaned_data.get(f"clear-{_key(line)}"))

    def clean(self) -> dict[str, Any]:
        for line in self.lines:
            value = self.value_of(line)
            if not value:
                continue
            is_token = line.declared.kind == SecretKind.BEARER
            if is_token:
                value = self.cleaned_data[_key(line)] = clean_token(value)
            problem = problem_of_token(value) if is_token else problem_of_value(value)
            if problem:
                self.add_error(_key(line), problem)
            elif self.is_cleared(line):
                self.add_error(_key(line), "Enter a new value or clear it, not both.")
        return self.cleaned_data


def _key(line: SecretLine) -> str:
    return f"{line.declared.kind}-{line.declared.name}"


def _secret_field(line: SecretLine) -> forms.Field:
    declared = line.declared
    label, hint = declared.title or declared.name, _hint_of(line)
    if declared.choices:
        choices = [("", "–"), *((each, each) for each in declared.choices)]
        return forms.ChoiceField(
            label=label,
            help_text=hint,
            required=False,
            choices=choices,
            initial=declared.default,
        )
    if declared.is_secret:
        # A password field gives nothing back, whatever was posted.
        widget = forms.PasswordInput(PASSWORD)
        return forms.CharField(label=label, help_text=hint, required=False, widget=widget)
    return forms.CharField(
        label=label,
        help_text=hint,
        required=False,
        initial=declared.default,
        widget=forms.TextInput(PLAIN),
    )


def _hint_of(line: SecretLine) -> str:
    if line.stored is None:
        return "Required to connect." if line.is_required else ""
    by = f" by {line.stored.set_by}" if line.stored.set_by else ""
    at = line.stored.set_at
    return f"Set {at.day} {at:%B %Y}{by}. Leave it empty to keep it."


class HeaderForm(forms.Form):
    name = forms.CharField(required=False, widget=forms.TextInput(PLAIN))
    value = forms.CharField(required=False, widget=forms.PasswordInput(PASSWORD))

    def clean(self) -> dict[str, Any]:
        name, value = self.cleaned_data.get("name", ""), self.cleaned_data.get("value", "")
        if name and not value:
            self.add_error("value", "Enter a value.")
        elif value and not name:
            self.add_error("name", "Enter the header's name.")
        elif name and (problem := problem_of_header(name, value)):
            self.add_error("name", problem)
        return self.cleaned_data


class PlacementForm(forms.Form):
    slot = forms.CharField(required=False, widget=forms.TextInput(PLAIN))
    route = forms.CharField(required=False, widget=forms.TextInput(PLAIN))
    label = forms.CharField(required=False)
    icon = forms.CharField(required=False, widget=forms.TextInput(PLAIN))
    priority = forms.IntegerField(required=False)

    def entry(self) -> dict[str, Any]:
        """The placement as JSON has it; empty for a row that was left blank."""
        return {key: value for key, value in self.cleaned_data.items() if value not in ("", None)}

    def clean(self) -> dict[str, Any]:
        if entry := self.entry():
            for reason in parse_placements([entry])[1]:
                self.add_error(None, reason.removeprefix("placement 1: ").capitalize() + ".")
        return self.cleaned_data


HeaderRows = forms.formset_factory(HeaderForm, extra=2, max_num=MAX_ROWS, absolute_max=MAX_ROWS)
PlacementRows = forms.formset_factory(
    PlacementForm, extra=1, max_num=MAX_ROWS, absolute_max=MAX_ROWS
)


class ImportForm(forms.Form):
    """A registry's server.json, pasted or uploaded. `description` is what it says, once valid."""

    text = forms.CharField(
        label="Contents of the file",
        required=False,
        widget=forms.Textarea({**PLAIN, "rows": 6}),
    )
    file = forms.FileField(
        label="Or the file itself",
        required=False,
        widget=forms.FileInput({"accept": ".json,application/json"}),
    )
    # Its value is big, and typed nowhere else: a prefix keeps its ids apart from the form below.
    prefix = "import"
    description: ServerDescription

    def clean(self) -> dict[str, Any]:
        cleaned = self.cleaned_data
        try:
            text = _text_of(cleaned.get("file"), cleaned.get("text", ""))
            found = parse_server_json(json.loads(text))
        except (ValueError, RecursionError):
            raise forms.ValidationError("This is not JSON.") from None
        if isinstance(found, Refusal):
            raise forms.ValidationError(f"This server cannot be connected: {found.reason}.")
        cleaned["text"], self.description = text, found
        return cleaned

    def problems(self) -> list[tuple[str, str]]:
        """Every error as (id of its field, words)."""
        return [(self["text"].id_for_label, str(text)) for text in self.non_field_errors()]


def _text_of(file: Any, text: str) -> str:
    if file is not None and file.size > MAX_SERVER_JSON_BYTES:
        raise forms.ValidationError("The file is larger than 256 KiB.")
    found: str = file.read().decode() if file is not None else text
    if not found.strip():
        raise forms.ValidationError("Paste the contents or choose a file.")
    if len(found) > MAX_SERVER_JSON_BYTES:
        raise forms.ValidationError("The file is larger than 256 KiB.")
    return found


class RemoveForm(forms.Form):
    """The connector's name, typed, so that nobody removes the wrong one."""

    typed = forms.CharField(
        label="Type its name to confirm", required=False, widget=forms.TextInput(PLAIN)
    )

    def __init__(self, data: Any = None, *, name: str) -> None:
        super().__init__(data)
        self.name = name

    def clean_typed(self) -> str:
        typed: str = self.cleaned_data["typed"]
        if clean_name(typed) != clean_name(self.name):
            raise forms.ValidationError(f"The name is {self.name}.")
        return typed
