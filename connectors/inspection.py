"""Reads for a connector's own page: how its checks went, what it lists, what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from django.conf import settings
from django.db.models import Max, Q

from connectors.declared import Declared, from_json, to_fill_in
from connectors.models import (
    Check,
    Connector,
    Listing,
    OAuthGrant,
    Secret,
    SecretKind,
    ToolCall,
    Transport,
)
from connectors.protocol.resource_arguments import parse_declaration
from connectors.protocol.text import shorten
from connectors.protocol.uri_templates import BadTemplate, parse
from connectors.queries import Standing, required_of
from connectors.sessions import FaultKind
from connectors.status import Action, Status, allowed

CHECKS_IN_MEDIAN = 20
CALLS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a connector is not ready, in people's words, and the one action that helps."""

    happened: str
    since: datetime | None
    advice: str
    action: Action
    button: str
    detail: str = ""
    is_about_settings: bool = False
    """Whether the advice names settings, so that the way to them belongs beside it."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that takes resources. arguments: each with its schemes."""

    name: str
    arguments: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Template:
    """A resource template as it was listed. problem: why it claims nothing; empty if it does."""

    text: str
    title: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SecretLine:
    """A value that can be filled in, and whether it is: never the value."""

    declared: Declared
    is_required: bool
    stored: Secret | None


@dataclass(frozen=True, slots=True)
class Losses:
    """What removing a connector deletes, and what stays."""

    secrets: int
    traces: int
    traces_until: datetime | None


def problem_of(standing: Standing) -> Problem | None:
    """What keeps a connector from being ready; None for one that is."""
    connector = standing.connector
    match standing.status:
        case Status.READY:
            return None
        case Status.AT_REST:
            return _at_rest(connector)
        case Status.CONFIGURATION_REQUIRED if not standing.missing:
            return Problem(
                connector.failure,
                connector.connection_since,
                "Nothing was sent there. It is tried again by itself at the stored address.",
                Action.CONFIGURE,
                "Configure",
                connector.failure_detail,
            )
        case Status.CONFIGURATION_REQUIRED:
            names = ", ".join(standing.missing)
            return Problem(
                f"Settings without a value: {names}.",
                connector.asked_at,
                "Fill them in and it connects by itself.",
                Action.CONFIGURE,
                "Configure",
            )
        case Status.CONNECTING:
            return Problem(
                "A sign-in to the server is under way.",
                connector.sign_in_started_at,
                "Finish it in the window where it was started. After 15 minutes it ends by itself.",
                Action.CANCEL,
                "Cancel",
            )
        case Status.STARTING:
            return Problem(
                "The server is being reached for the first time since the last change.",
                connector.connection_since,
                "The result shows here in a few seconds.",
                Action.CANCEL,
                "Cancel",
            )
        case Status.RECONNECTION_NEEDED:
            return _reconnection_needed(connector)
        case Status.FAILED:
            return Problem(
                connector.failure or "The server could not be reached.",
                connector.connection_since,
                "It is tried again by itself. If it stays so, look whether the server runs and "
                "whether its address is right.",
                Action.RECONNECT,
                "Try again",
                connector.failure_detail,
                is_about_settings=True,
            )


def _at_rest(connector: Connector) -> Problem:
    if connector.disconnected_at is None:
        happened, since = "Nobody has connected it.", None
    else:
        by = f" by {connector.disconnected_by}" if connector.disconnected_by else ""
        happened, since = f"Disconnected{by}.", connector.disconnected_at
    advice = "Nothing is read from its server, and it has no rows on the overview."
    return Problem(happened, since, advice, Action.CONNECT, "Connect")


def acts_offered(standing: Standing) -> dict[str, bool]:
    """Whether a page offers each act, by its name. Costs statements: once for each connector."""
    offered = {action.value: allowed(standing.status, action) for action in Action}
    return offered | {Action.SIGN_IN.value: _may_sign_in(standing)}


def _may_sign_in(standing: Standing) -> bool:
    """Whether to offer a sign-in: the server wants one or had one, and no token is typed in."""
    connector = standing.connector
    if not allowed(standing.status, Action.SIGN_IN) or not _takes_sign_in(connector):
        return False
    return (
        standing.status in (Status.RECONNECTION_NEEDED, Status.CONNECTING)
        or OAuthGrant.objects.filter(connector=connector).exists()
        # Some let everybody in and want to know only who calls their tools.
        or any(each.fault == FaultKind.UNAUTHORIZED for each in recent_calls(connector))
    )


def _takes_sign_in(connector: Connector) -> bool:
    typed = Q(kind=SecretKind.BEARER) | Q(kind=SecretKind.HEADER, name__iexact="authorization")
    is_http = connector.transport == Transport.HTTP
    return is_http and not connector.secrets.filter(typed).exists()


def grant_of(connector: Connector) -> OAuthGrant | None:
    """What signing in gave, without the tokens: what a page is rendered from cannot show them."""
    grants = OAuthGrant.objects.defer("client", "access_token", "refresh_token")
    return grants.select_related("signed_in_by").filter(connector=connector).first()


def _reconnection_needed(connector: Connector) -> Problem:
    if _takes_sign_in(connector):
        advice = (
            "Sign in on the server's own page and you come back here. If it takes a token instead, "
            "set one under Configure."
        )
        action, button = Action.SIGN_IN, "Sign in"
    else:
        advice = (
            "It is not tried again by itself. Set a new token or header under Configure, or "
            "reconnect if the server was wrong."
        )
        action, button = Action.RECONNECT, "Reconnect"
    return Problem(
        connector.failure or "The server wants a sign-in.",
        connector.credential_refused_at or connector.connection_since,
        advice,
        action,
        button,
        connector.failure_detail,
        is_about_settings=True,
    )


def median_latency_ms(connector: Connector) -> int | None:
    """Of the last checks that got an answer; None if there are none."""
    recent = connector.checks.filter(is_ok=True, latency_ms__isnull=False).order_by("-at")
    latencies = [each.latency_ms or 0 for each in recent.only("latency_ms")[:CHECKS_IN_MEDIAN]]
    return round(median(latencies)) if latencies else None


def last_check(connector: Connector) -> Check | None:
    """The newest that is still kept."""
    return connector.checks.order_by("-at").first()


def listings_of(connector: Connector) -> dict[str, Listing]:
    """The last good listing of each kind, by kind."""
    return {each.kind: each for each in connector.listings.all()}


def templates_in(listing: Listing | None) -> list[Template]:
    """The templates as they were listed: those that claim nothing come last, with the reason."""
    found = [_template(entry) for entry in (listing.entries if listing else [])]
    return sorted(found, key=lambda each: bool(each.problem))


def _template(entry: Any) -> Template:
    text, title = _text(entry, "uriTemplate"), _text(entry, "title") or _text(entry, "name")
    problem = "" if text else "uriTemplate is missing or not text"
    try:
        parse(text)
    except BadTemplate as bad:
        problem = problem or str(bad)
    return Template(shorten(text) or "–", shorten(title), problem)


def tools_in(listing: Listing | None) -> list[Tool]:
    """The tools that declare resource arguments, in the server's order."""
    found = []
    for entry in listing.entries if listing else []:
        declaration = parse_declaration(entry.get("_meta") if isinstance(entry, dict) else None)
        if declaration:
            arguments = tuple(
                (shorten(name), tuple(sorted(schemes))) for name, schemes in declaration.items()
            )
            found.append(Tool(shorten(_text(entry, "name")), arguments))
    return found


def _text(entry: Any, member: str) -> str:
    value = entry.get(member) if isinstance(entry, dict) else None
    return value if isinstance(value, str) else ""


def recent_calls(connector: Connector) -> list[ToolCall]:
    """The newest tool calls that went to the connector."""
    calls = connector.tool_calls.select_related("user", "token").order_by("-started_at")
    return list(calls[:CALLS_SHOWN])


def secret_lines(connector: Connector) -> list[SecretLine]:
    """Every value that is set or can be: the token, what was declared, what was added by hand."""
    # Not the value: what a page is rendered from cannot show it.
    stored = {
        (each.kind, each.name): each
        for each in connector.secrets.defer("value").select_related("set_by").order_by("name")
    }
    token = Declared(str(SecretKind.BEARER), "token", "Bearer token", is_required=False)
    known = {
        each.key: each
        for each in [token, *to_fill_in(connector.url, from_json(connector.required))]
    }
    for key in stored:
        known.setdefault(key, Declared(*key, is_required=False))
    required = set(required_of(connector))
    return [
        SecretLine(declared, key in required, stored.get(key)) for key, declared in known.items()
    ]


def losses_of(connector: Connector) -> Losses:
    """What goes and what stays when the connector is removed."""
    newest = connector.tool_calls.aggregate(at=Max("started_at"))["at"]
    return Losses(
        secrets=connector.secrets.count() + OAuthGrant.objects.filter(connector=connector).count(),
        traces=connector.tool_calls.count(),
        traces_until=newest and newest + timedelta(days=settings.TRACE_DAYS),
    )
