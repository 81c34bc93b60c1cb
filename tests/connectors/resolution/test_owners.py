"""Resource arguments of calls through the endpoint: who owns a URI, and whose reach counts."""

from __future__ import annotations

import pytest

from connectors.models import Secret
from tests.connectors.outside import Outside, install, relist, token_for, tool
from tests.connectors.resolution.seen import codes, echo, read_uris
from workspaces.actions import create_workspace


@pytest.mark.requirement("R-052", "R-054", "R-060", "D8")
def test_two_claimants_are_ambiguous_and_neither_is_read(world, acme, mail, crm):
    install(acme, "copy", crm.url, listings={"templates": ["crm://signals/{other}"]})

    world.call("mail__send", {"to": "crm://signals/1"})

    assert codes(mail) == {"crm://signals/1": "ambiguous"}
    assert read_uris(crm) == []


@pytest.mark.requirement("R-060", "R-059", "R-053", "R-057", "R-067")
def test_the_caller_may_own_and_may_make_ambiguous(agent, acme, mail, crm):
    mail.on("resources/read", echo)
    templates = ["crm://mine/{id}", "crm://mine/{+rest}", "crm://fixed", "crm://both/{x}"]
    install(
        acme,
        "mail",
        mail.url,
        listings={"tools": [tool("send", cites={"to": ["crm"]})], "templates": templates},
    )
    install(acme, "crm", crm.url, listings={"templates": ["crm://theirs/{id}", "crm://both/{y}"]})

    uris = ["crm://mine/1", "crm://fixed", "crm://theirs/1", "crm://both/1"]
    agent.call("mail__send", {"to": uris})

    assert list(codes(mail).values()) == ["ok", "ok", "ok", "ambiguous"]
    assert sorted(read_uris(mail)) == ["crm://fixed", "crm://mine/1"]
    assert read_uris(crm) == ["crm://theirs/1"]


@pytest.mark.requirement("R-062", "R-063", "R-068", "D8")
@pytest.mark.parametrize(
    ("facts", "alone", "beside"),
    [
        ({"connection": "failed"}, "not_found", "ambiguous"),
        ({"connection": "starting"}, "not_found", "ambiguous"),
        ({"credential_refused_at": "2026-01-01T00:00Z"}, "not_found", "ambiguous"),
        ({"sign_in_needed": True}, "not_found", "ambiguous"),
        ({"required": [{"kind": "bearer", "name": "Token"}]}, "not_found", "ambiguous"),
        ({"asked_at": None, "connection": "idle"}, "not_found", "ok"),
    ],
)
def test_whoever_is_not_at_rest_counts(agent, acme, mail, crm, facts, alone, beside):
    install(acme, "mail", mail.url, listings={"tools": [tool("send", cites={"to": ["crm"]})]})
    install(acme, "other", crm.url, listings={"templates": ["crm://{id}"]}, **facts)

    agent.call("mail__send", {"to": "crm://1"})
    assert codes(mail) == {"crm://1": alone}
    assert read_uris(crm) == []

    install(acme, "crm", crm.url, listings={"templates": ["crm://{id}"]})
    agent.call("mail__send", {"to": "crm://1"})
    assert codes(mail) == {"crm://1": beside}


@pytest.mark.requirement("R-051", "R-055", "R-056", "R-061", "R-064", "R-079", "R-081", "R-082")
def test_only_a_template_of_this_workspace_is_a_claim(agent, acme, other, alice, mail, crm):
    install(acme, "mail", mail.url, listings={"tools": [tool("send", cites={"to": ["crm"]})]})
    broken = ["crm://{id", "crm://{!x}", {"uriTemplate": 5}, "crm://" + "x" * 20_000 + "{id}"]
    install(acme, "broken", crm.url, listings={"templates": broken})
    install(acme, "lister", crm.url, listings={"resources": [{"uri": "crm://1", "name": "one"}]})
    install(other, "theirs", crm.url, listings={"templates": ["crm://{id}"]})
    install(alice, "own", crm.url, listings={"templates": ["crm://{id}"]})

    agent.call("mail__send", {"to": "crm://1"})
    assert codes(mail) == {"crm://1": "not_found"}
    assert read_uris(crm) == []

    crm_record = install(acme, "crm", crm.url, listings={"templates": ["crm://{id}"]})
    agent.call("mail__send", {"to": "crm://1"})
    assert codes(mail) == {"crm://1": "ok"}

    install(acme, "greedy", crm.url, listings={"templates": ["{+uri}"]})
    agent.call("mail__send", {"to": "crm://1"})
    assert codes(mail) == {"crm://1": "ambiguous"}
    relist(crm_record, "templates", [])
    agent.call("mail__send", {"to": "crm://1"})
    assert codes(mail) == {"crm://1": "ok"}


@pytest.mark.requirement("R-065", "R-066")
def test_the_hosts_own_schemes_are_never_resolved(agent, acme, mail, crm):
    schemes = ["files", "UI", "skill", "artifact", "conversation"]
    install(acme, "mail", mail.url, listings={"tools": [tool("send", cites={"to": schemes})]})
    templates = [f"{each.lower()}://{{id}}" for each in schemes] + ["{+uri}"]
    install(acme, "crm", crm.url, listings={"templates": templates})

    uris = [f"{each}://1" for each in [*schemes, "Files", "mail"]]
    agent.call("mail__send", {"to": uris})

    assert list(codes(mail).values()) == ["not_found"] * 6 + ["scheme_not_declared"]
    assert read_uris(crm) == []


@pytest.mark.requirement("R-131", "R-132", "R-134")
@pytest.mark.parametrize(
    ("allowed", "code"),
    [
        (["mail__send"], "not_found"),
        (["mail__*", "read_mcp_resource"], "not_found"),
        (["mail__*", "nb__read_resource"], "ok"),
        (["mail__*", "nb__*"], "ok"),
        (["*"], "ok"),
        (None, "ok"),
    ],
)
def test_a_tasks_reach_is_that_of_its_own_read(site, world, acme, alice, mail, crm, allowed, code):
    task = Outside(site, "acme", token_for(acme, alice, allowed_tools=allowed))
    uris = ["crm://signals/1", "crm://nobody", "mail://1"] + [f"crm://x/{n}" for n in range(40)]

    task.call("mail__send", {"to": uris})

    found = list(codes(mail).values())
    assert found[:3] == [code, "not_found", "scheme_not_declared"]
    assert ("over_limit" in found) is (code == "ok")
    assert len(read_uris(crm)) == (code == "ok")


@pytest.mark.requirement("R-140", "F-087")
def test_the_owner_sees_the_workspaces_credential_and_nothing_of_the_caller(
    agent, acme, alice, mail, crm
):
    install(acme, "mail", mail.url, listings={"tools": [tool("send", cites={"to": ["crm"]})]})
    secret = Secret(kind="bearer", name="Token", value="workspace-credential")
    install(acme, "crm", crm.url, secrets=[secret], listings={"templates": ["crm://{id}"]})

    agent.call("mail__send", {"to": "crm://1"}, meta={"vendor/member": alice.email})

    [read] = crm.seen("resources/read")
    assert read.headers["authorization"] == "Bearer workspace-credential"
    seen = str(read.message) + str(read.headers)
    for hint in ["alice", "Alice", "send", "mail", "vendor/member", agent.token]:
        assert hint not in seen


@pytest.mark.requirement("R-142")
def test_a_refused_call_makes_no_read(site, world, acme, alice, crm, mail):
    task = Outside(site, "acme", token_for(acme, alice, allowed_tools=["nb__*"]))
    assert task.call("mail__send", {"to": "crm://signals/1"}).is_error
    assert world.post(
        "tools/call", {"name": "mail__send", "arguments": ["crm://signals/1"]}
    ).json()["error"]

    assert read_uris(crm) == [] and mail.count("tools/call") == 0


def test_one_workspace_never_serves_another(site, world, alice, mail, crm):
    second = create_workspace("second", "Second", admin=alice)
    declared = [tool("send", cites={"to": ["crm"]})]
    install(second, "mail", mail.url, listings={"tools": declared})

    Outside(site, "second", token_for(second, alice)).call("mail__send", {"to": "crm://signals/1"})

    assert codes(mail) == {"crm://signals/1": "not_found"}
    assert read_uris(crm) == []
