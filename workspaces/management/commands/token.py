"""`manage.py token create|list|revoke`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from workspaces.actions import create_token, revoke_token
from workspaces.command_line import (
    Acts,
    ActsCommand,
    Report,
    add_act,
    person_named,
    workspace_named,
)
from workspaces.models import ApiToken
from workspaces.queries import membership_of, tokens_in

MAX_DAYS = 36_500


class Command(ActsCommand):
    help = "Make, list and revoke the tokens of outside agents."

    def add_acts(self, acts: Acts) -> None:
        create = add_act(acts, "create", _create, "Make a token. It is shown this once.")
        create.add_argument("slug")
        create.add_argument("email", help="The member in whose name it acts.")
        create.add_argument("--name", default="Command line")
        create.add_argument(
            "--tool", action="append", metavar="GLOB", help="Allow only such tools; repeatable."
        )
        create.add_argument(
            "--days", type=int, help="How long it works; without it, until revoked."
        )
        add_act(acts, "list", _list, "List the tokens.").add_argument("slug")
        revoke = add_act(acts, "revoke", _revoke, "Stop a token for good.")
        revoke.add_argument("slug")
        revoke.add_argument("id", type=int, help="As `token list` shows it.")


def _create(
    slug: str, email: str, name: str, tool: list[str] | None, days: int | None, **_: Any
) -> Report:
    workspace, user = workspace_named(slug), person_named(email)
    if membership_of(workspace, user.pk) is None:
        raise CommandError(f"{email} is no member of {workspace}. `member add` makes them one.")
    if not 1 <= len(name) <= 100:
        raise CommandError("A name has 1 to 100 characters.")
    if days is not None and not 1 <= days <= MAX_DAYS:
        raise CommandError(f"--days takes 1 to {MAX_DAYS}.")
    expires_at = None if days is None else timezone.now() + timedelta(days=days)
    token, text = create_token(
        workspace, user, name, allowed_tools=tool, expires_at=expires_at, by_operator=True
    )
    words = f"{text}\nIt acts for {user.email} at /mcp/{slug} and is not shown again."
    return Report(words, {"token": text, "path": f"/mcp/{slug}", **_data(token)})


def _list(slug: str, **_: Any) -> Report:
    tokens = list(tokens_in(workspace_named(slug)))
    lines = [f"{token.pk}\t{token.start}…\t{token.user.email}\t{token.name}" for token in tokens]
    words = "\n".join(lines) or "No tokens yet. `token create` makes one."
    return Report(words, {"workspace": slug, "tokens": [_data(token) for token in tokens]})


def _revoke(slug: str, id: int, **_: Any) -> Report:
    token = tokens_in(workspace_named(slug)).filter(pk=id).first()
    if token is None:
        raise CommandError(f"There is no token {id} in this workspace. `token list` shows them.")
    revoke_token(token, by=None)
    return Report(f"{token} no longer works.", {"workspace": slug, "id": id, "revoked": True})


def _data(token: ApiToken) -> dict[str, Any]:
    return {
        "id": token.pk,
        "workspace": token.workspace.slug,
        "email": token.user.email,
        "name": token.name,
        "start": token.start,
        "allowed_tools": token.allowed_tools,
        "created_at": token.created_at,
        "last_used_at": token.last_used_at,
        "expires_at": token.expires_at,
    }
