"""Every address of the site, found in its own table, against everybody who must not use it."""

from __future__ import annotations

import re
import uuid
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.urls import get_resolver, reverse
from django.utils import timezone

from connectors.models import Listing, ToolCall, TraceEvent
from overview.models import StoredFacet
from tests.connectors.records import MARKER, ready
from workspaces.actions import create_token
from workspaces.models import AuditEntry, User

HOSTILE = "\"><img src=x onerror=alert(1)>\u202e</script><script>alert(1)</script>{{ 7 }}'`"
ROUTE = "mail"
TRACE = uuid.UUID(int=7)


def addresses():
    """(name, parameters) of each address below a workspace or of a person, from the URL table."""
    found = []
    for namespace in ("overview", "connectors", "workspaces", "operators"):
        before, resolver = get_resolver().namespace_dict[namespace]
        above = ("slug",) if "slug" in before else ()
        for name in resolver.reverse_dict:
            if isinstance(name, str):
                possibilities, *_ = resolver.reverse_dict.getlist(name)[0]
                found.append((f"{namespace}:{name}", (*above, *possibilities[0][1])))
    return sorted(found)


ALL = addresses()
IN_WORKSPACE = [each for each in ALL if "slug" in each[1]]
PERSONAL = [
    each
    for each in ALL
    if "slug" not in each[1] and each[0].startswith("connectors:personal") and each[1]
]


def test_the_table_is_the_whole_site():
    assert len(IN_WORKSPACE) >= 30
    assert len(PERSONAL) > 6
    assert {"overview:panel", "overview:attention", "connectors:trace"} <= {n for n, _ in ALL}


@pytest.fixture
def acme_filled(acme, alice, bob, carol):
    """Acme with one of everything; all of it named by the marker."""
    entry: dict[str, Any] = {
        "uri": "acme://facets/a",
        "name": "a",
        "title": f"{MARKER} drafts",
        "mimeType": "application/json",
        "_meta": {"ai.nimblebrain/facets": {"level": "warning"}},
    }
    mail = ready(acme, name=f"{MARKER} Mail", placements=[{"slot": "main", "route": ROUTE}])
    mail.slug = "mail"
    mail.save()
    now = timezone.now()
    Listing.objects.filter(connector=mail).update(taken_at=now, epoch=mail.epoch)
    Listing.objects.filter(connector=mail, kind="resources").update(entries=[entry])
    StoredFacet.objects.create(
        connector=mail,
        name_digest="a",
        position=0,
        name="a",
        uri=entry["uri"],
        title=entry["title"],
        level="warning",
        count="3",
        read_at=now,
        epoch=mail.epoch,
    )
    token, _ = create_token(acme, bob, f"{MARKER} token")
    call = ToolCall.objects.create(
        id=TRACE,
        workspace=acme,
        connector=mail,
        connector_name=mail.name,
        tool=f"mail__{MARKER}",
        caller="outside",
        user=bob,
        started_at=now,
        duration_ms=5,
        outcome="failed",
        problem=MARKER,
    )
    TraceEvent.objects.create(
        call=call, position=0, kind="resource_argument", offset_ms=1, uri=MARKER, code="not_found"
    )
    AuditEntry.objects.create(workspace=acme, action="renamed", subject=MARKER)
    return {
        "slug": "acme",
        "connector": "mail",
        "route": ROUTE,
        "user_id": bob.pk,
        "token_id": token.pk,
        "trace": TRACE,
    }


def path_of(address, known, **changes):
    name, parameters = address
    values = {**known, **changes}
    return reverse(name, kwargs={each: values[each] for each in parameters})


def plain(answer):
    """An answer without what differs each time that it is asked for."""
    changing = r'data-now="[^"]*"|name="csrfmiddlewaretoken" value="[^"]*"'
    return re.sub(changing, "", answer.content.decode())


def rows_of_others(carol):
    """All rows but those of sessions, as text."""
    left_out = {"django_session", "axes_accessattempt", "axes_accesslog"}
    found = []
    with connection.cursor() as cursor:
        for table in sorted(connection.introspection.table_names(cursor)):
            if table not in left_out:
                cursor.execute(f'SELECT * FROM "{table}" ORDER BY 1')
                found += [(table, str(row)) for row in cursor.fetchall()]
    return found


FIELDS = {
    "name": "Taken",
    "email": "carol@example.com",
    "role": "admin",
    "url": "https://evil.example/mcp",
    "typed": f"{MARKER} Mail",
    "expiry": "30",
    "uri": "crm://x",
    "connector": "mail",
}


@pytest.mark.requirement("F-150")
@pytest.mark.parametrize("address", IN_WORKSPACE, ids=lambda address: address[0])
def test_a_stranger_gets_what_a_missing_workspace_gives_and_changes_nothing(
    acme_filled, carol, carol_client, address
):
    before = rows_of_others(carol)
    for method, fields in (("get", None), ("post", FIELDS), ("head", None), ("put", None)):
        answers = [
            getattr(carol_client, method)(path_of(address, acme_filled, slug=slug), fields)
            for slug in ("acme", "nowhere")
        ]
        assert answers[0].status_code in (404, 405)
        assert answers[0].status_code == answers[1].status_code
        assert plain(answers[0]) == plain(answers[1])
        assert MARKER not in plain(answers[0])
        assert answers[0].headers.keys() == answers[1].headers.keys()
    assert rows_of_others(carol) == before


OF_A_THING = [each for each in IN_WORKSPACE if len(each[1]) > 1]


@pytest.mark.parametrize("address", OF_A_THING, ids=lambda address: address[0])
def test_ids_of_another_workspace_name_nothing_in_ones_own(
    acme_filled, carol, carol_client, address
):
    before = rows_of_others(carol)
    for method, fields in (("get", None), ("post", FIELDS)):
        answer = getattr(carol_client, method)(path_of(address, acme_filled, slug="other"), fields)
        # A removal or revocation sent twice leads back to the list.
        assert answer.status_code in (302, 404, 405)
        assert MARKER not in answer.content.decode()
    assert rows_of_others(carol) == before


@pytest.mark.parametrize("address", PERSONAL, ids=lambda address: address[0])
def test_another_persons_connector_is_nobodys(acme_filled, carol, carol_client, alice, address):
    mine = ready(None, owner=alice, slug="mine", name=MARKER)
    path = reverse(address[0], kwargs={"connector": mine.slug})
    before = rows_of_others(carol)
    for method in ("get", "post"):
        assert getattr(carol_client, method)(path, FIELDS).status_code in (404, 405)
    assert rows_of_others(carol) == before


@pytest.mark.parametrize("address", [*IN_WORKSPACE, *PERSONAL], ids=lambda address: address[0])
def test_nobody_who_is_signed_out_reads_or_changes_anything(acme_filled, carol, address):
    before = rows_of_others(carol)
    for method, fields in (("get", None), ("post", FIELDS)):
        answer = getattr(Client(), method)(path_of(address, acme_filled), fields)
        assert answer.status_code in (302, 401, 405)
        assert answer.status_code != 302 or answer["Location"].startswith("/sign-in/?next=/")
    assert rows_of_others(carol) == before


@pytest.mark.parametrize("address", [*IN_WORKSPACE, *PERSONAL], ids=lambda address: address[0])
def test_a_form_of_another_site_is_refused_everywhere(acme_filled, alice, carol, address):
    ready(None, owner=alice, slug="mine")
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    before = rows_of_others(carol)
    path = path_of(address, {**acme_filled, "connector": "mail"})
    assert client.post(path, FIELDS).status_code == 403
    assert rows_of_others(carol) == before


def test_no_view_is_exempt_from_the_check_of_forms():
    def views(patterns):
        for each in patterns:
            yield from (
                views(each.url_patterns) if hasattr(each, "url_patterns") else [each.callback]
            )

    exempt = [each for each in views(get_resolver().url_patterns) if _is_exempt(each)]
    assert exempt == []


def _is_exempt(view):
    return getattr(view, "csrf_exempt", False)


def test_an_operator_who_is_no_member_reads_nothing_of_a_workspace(
    acme_filled, carol, carol_client
):
    carol.is_staff = True
    carol.save()
    carol.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    for address in IN_WORKSPACE:
        answer = carol_client.get(path_of(address, acme_filled))
        assert (address[0], answer.status_code in (404, 405)) == (address[0], True)


# --- Text of strangers on every page -----------------------------------------------------------


class Page(HTMLParser):
    """What a browser would make of a page, as far as it can do harm."""

    VOID = frozenset({"meta", "link", "input", "img", "br", "hr", "use", "path", "circle", "line"})

    def __init__(self, html):
        super().__init__()
        self.harm, self.bare, self._open = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag in ("img", "iframe", "object", "embed", "style", "base"):
            self.harm.append(tag)
        if tag == "script" and not (values.get("src") or "").startswith("/static/"):
            self.harm.append(f"script {values}")
        for name, value in attrs:
            is_link = name in ("href", "src", "action", "formaction", "data-copy", "data-reveal")
            if name.startswith("on") or name == "style":
                self.harm.append(f"{tag} {name}")
            if is_link and not re.match(
                r"(/(?!/)|#|\?|https://(mail\.)?example\.com)", value or "#"
            ):
                self.harm.append(f"{tag} {name}={value}")
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data):
        apart = {"bdi", "pre", "code", "textarea", "option", "title", "output"}
        if "\u202e" in data and not apart & set(self._open):
            self.bare.append((list(self._open), data.strip()[:80]))


@pytest.fixture
def hostile(acme_filled, acme, alice, bob):
    """Whatever a server or a person can name says the same thing."""
    acme.name = HOSTILE[:100]
    acme.save()
    User.objects.update(name=HOSTILE[:150])
    mail = acme.connectors.get()
    mail.name, mail.failure, mail.failure_detail = HOSTILE[:100], HOSTILE, HOSTILE
    mail.server_name, mail.server_version = HOSTILE[:200], HOSTILE[:100]
    mail.placements = [{"slot": "main", "route": ROUTE, "label": HOSTILE, "icon": HOSTILE}]
    mail.required = [{"kind": "header", "name": "X", "title": HOSTILE, "is_required": False}]
    mail.save()
    entry = {"name": HOSTILE, "title": HOSTILE, "description": HOSTILE, "uri": HOSTILE}
    entry |= {"uriTemplate": f"crm://{HOSTILE}/{{id}}", "mimeType": HOSTILE}
    schema = {"type": "object", "properties": {HOSTILE: {"type": "string", "title": HOSTILE}}}
    meta = {"ai.nimblebrain/resource-arguments": {HOSTILE: [HOSTILE]}}
    tool = {"name": "send", "title": HOSTILE, "description": HOSTILE, "inputSchema": schema}
    for kind, entries in {
        "tools": [{**tool, "_meta": meta}],
        "templates": [entry],
        "resources": [entry],
    }.items():
        skipped = [{"name": HOSTILE, "uri": HOSTILE, "reason": HOSTILE}]
        Listing.objects.filter(connector=mail, kind=kind).update(
            entries=entries, skipped=skipped, cut_short=HOSTILE, failure=HOSTILE
        )
    StoredFacet.objects.update(title=HOSTILE, name=HOSTILE, uri=HOSTILE)
    ToolCall.objects.update(tool=HOSTILE[:200], problem=HOSTILE, connector_name=HOSTILE[:100])
    TraceEvent.objects.update(uri=HOSTILE, server_name=HOSTILE[:100], code=HOSTILE[:20])
    AuditEntry.objects.update(subject=HOSTILE[:200])
    alice.tokens.update(name=HOSTILE[:100])
    bob.tokens.update(name=HOSTILE[:100], allowed_tools=[HOSTILE])
    return acme_filled


QUERIES = {"connectors:tool": "?name=mail__send", "connectors:overlaps": "?uri=crm://%22%3E%3Cb"}


@pytest.mark.requirement("F-095")
@pytest.mark.parametrize("address", IN_WORKSPACE, ids=lambda address: address[0])
def test_hostile_text_is_text_on_every_page(hostile, alice_client, address):
    name = address[0]
    answer = alice_client.get(path_of(address, hostile) + QUERIES.get(name, ""))
    if answer.status_code == 405 or "text/html" not in answer["Content-Type"]:
        return
    assert answer.status_code == 200
    page = Page(answer.content.decode())
    assert page.harm == []
    assert page.bare == []
    assert "alert(1)</script>" not in answer.content.decode()


# --- What no database takes --------------------------------------------------------------------

FIELD = re.compile(r"<(?:input|textarea|select|button)\b[^>]*>")
ODD = "a\x00b"


def fields_in(html, *, also_hidden):
    """What a form of a page would send, with a NUL in all that somebody could write."""
    sent = {}
    for tag in FIELD.findall(html):
        name, value = (re.search(rf'\s{each}="([^"]*)"', tag) for each in ("name", "value"))
        if name and name[1] != "csrfmiddlewaretoken":
            is_kept = 'type="hidden"' in tag and not also_hidden
            sent[name[1]] = value[1] if is_kept and value else ODD
    return sent


@pytest.mark.parametrize("also_hidden", [False, True])
def test_a_nul_in_each_field_of_each_form_is_no_error_of_ours(
    acme_filled, alice, alice_client, also_hidden
):
    ready(None, owner=alice, slug="mine")
    known, tried = {**acme_filled, "connector": "mail"}, 0
    for address in [each for each in ALL if each[0] != "workspaces:sign_out"]:
        values = {**known, "connector": "mine"} if address in PERSONAL else known
        try:
            path = path_of(address, values)
        except KeyError:
            continue  # A link out of an e-mail or of another site: those have tests of their own.
        page = alice_client.get(path)
        if page.status_code == 200 and "text/html" in page["Content-Type"]:
            fields = fields_in(page.content.decode(), also_hidden=also_hidden)
            assert (address[0], alice_client.post(path, fields).status_code < 500) == (
                address[0],
                True,
            )
            tried += bool(fields)
    assert tried > 10
