"""What traces can be filtered by: a GET form, so that a filtered list has an address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.utils.http import urlencode

from connectors.models import Connector, Outcome
from connectors.protocol.resource_arguments import OutcomeCode

NAMES = ("connector", "tool", "outcome", "code", "from", "to", "tz")
_MINUTES = "%Y-%m-%dT%H:%M"


class TraceFilters(forms.Form):
    """What does not make sense filters nothing, and its field says so."""

    connector = forms.ChoiceField(required=False)
    tool = forms.CharField(
        required=False,
        max_length=200,
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
    )
    outcome = forms.ChoiceField(required=False, choices=[("", "Any"), *Outcome.choices])
    code = forms.ChoiceField(
        label="Resource outcome",
        required=False,
        choices=[("", "Any"), *((each.value, each.value) for each in OutcomeCode)],
    )

    def __init__(self, data: Mapping[str, str], *, connectors: Iterable[Connector]) -> None:
        super().__init__(data)
        self.zone_name, self.zone = _zone(data.get("tz", ""))
        named = [(each.slug, each.name) for each in connectors]
        self.fields["connector"].choices = [("", "Any"), *named]  # type: ignore[attr-defined]
        for name, label in (("from", "From"), ("to", "To")):
            self.fields[name] = forms.DateTimeField(
                label=label,
                required=False,
                input_formats=[_MINUTES, "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"],
                widget=forms.DateTimeInput({"type": "datetime-local"}, format=_MINUTES),
            )

    def clean(self) -> dict[str, Any]:
        for name in ("from", "to"):
            at: datetime | None = self.cleaned_data.get(name)
            if at is not None and not 1970 <= at.year < 9999:
                self.add_error(name, "Enter a year from 1970 on.")
            elif at is not None:
                # Entered on a clock in that zone.
                self.cleaned_data[name] = at.replace(tzinfo=self.zone)
        return self.cleaned_data

    @property
    def query(self) -> str:
        """What was chosen, for links that keep it."""
        chosen = [(name, self.data.get(name, "")) for name in NAMES]
        return urlencode([(name, value) for name, value in chosen if value])

    @property
    def is_used(self) -> bool:
        return any(self.data.get(name) for name in NAMES if name != "tz")


def _zone(name: str) -> tuple[str, ZoneInfo | Any]:
    """The zone of that name, or UTC where there is none here."""
    try:
        return name, ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return "UTC", UTC
