"""What people type on the pages of a workspace, checked."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, time, timedelta
from typing import Any

from django import forms
from django.contrib.auth import authenticate
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils import timezone

from workspaces.access import Member
from workspaces.guesses import may_guess, note_wrong_guess
from workspaces.models import Role, User
from workspaces.queries import has_token_named, membership_of, person_at

MAX_TOOLS = 50
MAX_TOOL_CHARS = 128
UNSEEN = {"Cc", "Cf", "Cn", "Co", "Cs", "Mn", "Zl", "Zp", "Zs"}
"""Unicode's general categories of what leaves no mark on a page by itself."""


class LineField(forms.CharField):
    """One line of text that people can see: white space collapsed, line breaks gone."""

    def to_python(self, value: object) -> str:
        line = " ".join(str(super().to_python(value) or "").split())
        if line and all(unicodedata.category(character) in UNSEEN for character in line):
            raise ValidationError("Enter a name that can be seen.", code="unseen")
        return line


class SignInForm(forms.Form):
    email = forms.CharField(
        max_length=254,
        error_messages={"required": "Enter your email address."},
        widget=forms.EmailInput({"autocomplete": "username"}),
    )
    password = forms.CharField(
        max_length=4096,
        strip=False,
        error_messages={"required": "Enter your password."},
        widget=forms.PasswordInput({"autocomplete": "current-password"}),
    )
    user: User

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._request = request

    def clean(self) -> dict[str, Any]:
        if not self.errors:
            user = authenticate(
                self._request,
                username=self.cleaned_data["email"],
                password=self.cleaned_data["password"],
            )
            if not isinstance(user, User):
                raise ValidationError("Email or password is wrong.", code="wrong")
            self.user = user
        return self.cleaned_data


class AddMemberForm(forms.Form):
    email = forms.EmailField(
        label="Email address",
        error_messages={"required": "Enter an email address."},
        widget=forms.EmailInput({"autocomplete": "off"}),
    )
    role = forms.ChoiceField(
        choices=Role.choices,
        initial=Role.MEMBER,
        error_messages={"required": "Choose a role."},
    )
    user: User

    def __init__(self, member: Member, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._workspace, self._asker = member.workspace, member.user

    def clean_email(self) -> str:
        email = str(self.cleaned_data["email"])
        if not may_guess(self._asker):
            raise ValidationError("Too many addresses that nobody has. Try again in an hour.")
        user = person_at(email)
        if user is None or not user.is_active:
            note_wrong_guess(self._asker)
            raise ValidationError(
                "Nobody here has this email address. Ask the operator of this site to add them."
            )
        self.user = user
        return email

    def clean(self) -> dict[str, Any]:
        if not self.errors:
            membership = membership_of(self._workspace, self.user.pk)
            # The same once more is a form that was sent twice, and no mistake.
            if membership is not None and membership.role != self.cleaned_data["role"]:
                words = "This person is already a member. Change their role in the list."
                self.add_error("email", words)
        return self.cleaned_data


class RoleForm(forms.Form):
    role = forms.ChoiceField(
        choices=[
            (Role.ADMIN, "Admin: changes connectors, members and settings"),
            (Role.MEMBER, "Member: sees everything, changes nothing"),
        ],
        error_messages={"required": "Choose a role."},
        widget=forms.RadioSelect,
    )


class GeneralForm(forms.Form):
    name = LineField(max_length=100, error_messages={"required": "Enter a name."})
    has_resource_tools = forms.BooleanField(
        required=False,
        label="Offer resource tools to outside clients",
        help_text="Adds the tools list_mcp_resources and read_mcp_resource, with which an agent "
        "finds and reads the resources of this workspace by itself.",
    )


class AppearanceForm(forms.Form):
    theme = forms.ChoiceField(
        choices=[("system", "System"), ("light", "Light"), ("dark", "Dark")],
        error_messages={"required": "Choose an appearance."},
        widget=forms.RadioSelect,
        help_text="Kept in this browser only.",
    )


class TokenForm(forms.Form):
    name = LineField(
        max_length=100,
        error_messages={"required": "Enter a name."},
        help_text="Says what uses it, such as “Desktop client”.",
    )
    expiry = forms.ChoiceField(
        label="Expires",
        choices=[("30", "In 30 days"), ("90", "In 90 days"), ("date", "On a date")],
        error_messages={"required": "Choose when it expires."},
        initial="90",
        widget=forms.RadioSelect,
    )
    date = forms.DateField(
        required=False,
        label="Date",
        widget=forms.DateInput({"type": "date"}),
        help_text="Works until the end of that day, UTC. Used only with “On a date”.",
        error_messages={"invalid": "Enter a date, such as 2027-01-31."},
    )
    tools = forms.CharField(
        required=False,
        label="Allowed tools",
        max_length=MAX_TOOLS * (MAX_TOOL_CHARS + 2),
        widget=forms.Textarea({"rows": 3, "spellcheck": "false", "autocapitalize": "none"}),
        help_text="One name, as under “Tools”, or pattern on each line: crm__* is all of the "
        "connector “crm”. Empty allows every tool.",
    )

    def __init__(self, member: Member, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._member = member

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        # It also makes a form that was sent twice harmless.
        if has_token_named(self._member.workspace, self._member.user, name, timezone.now()):
            raise ValidationError("You already have a token with this name.")
        return name

    def clean_tools(self) -> list[str] | None:
        lines = [line.strip() for line in self.cleaned_data["tools"].splitlines()]
        patterns = list(dict.fromkeys(line for line in lines if line))
        if len(patterns) > MAX_TOOLS:
            raise ValidationError(f"Enter at most {MAX_TOOLS} lines.")
        if any(len(pattern) > MAX_TOOL_CHARS or " " in pattern for pattern in patterns):
            raise ValidationError(
                f"A line holds one name or pattern: at most {MAX_TOOL_CHARS} characters, no spaces."
            )
        return patterns or None

    def clean(self) -> dict[str, Any]:
        date = self.cleaned_data.get("date")
        if self.cleaned_data.get("expiry") == "date" and "date" not in self.errors:
            if date is None:
                self.add_error("date", "Enter the date when the token stops working.")
            elif date < timezone.now().date():
                self.add_error("date", "Enter today or a later date.")
        return self.cleaned_data

    def expires_at(self, now: datetime) -> datetime:
        """When a token of this (valid) form stops working."""
        expiry = self.cleaned_data["expiry"]
        if expiry == "date":
            return datetime.combine(self.cleaned_data["date"], time(23, 59, 59), UTC)
        return now + timedelta(days=int(expiry))
