from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.protocol.identifiers import HOST
from connectors.protocol.placements import Placement
from connectors.protocol.server_json import (
    Refusal,
    ServerDescription,
    Setting,
    SettingKind,
    fill,
    parse_server_json,
)

HEADER = SettingKind.HEADER
VARIABLE = SettingKind.VARIABLE


def server(url: Any = "https://crm.example/mcp", **remote: Any) -> dict[str, Any]:
    return {
        "name": "com.example/crm",
        "description": "Records of customers",
        "version": "1.2.0",
        "remotes": [{"type": "streamable-http", "url": url} | remote],
    }


def described(body: Any) -> ServerDescription:
    description = parse_server_json(body)
    assert isinstance(description, ServerDescription), description
    return description


def test_a_server_is_described_with_all_that_connecting_it_takes():
    body = server(
        "https://{tenant}.crm.example/{region}/mcp",
        variables={
            "tenant": {"description": "Your tenant's name"},
            "region": {"choices": ["eu", "us"], "default": "eu", "isSecret": False},
        },
        headers=[
            {"name": "X-Key", "description": "API key", "isRequired": True, "isSecret": True},
            {"name": "X-Plan", "value": "free"},
            {
                "name": "Authorization",
                "value": "Bearer {token}",
                "variables": {"token": {"isRequired": True, "isSecret": True}},
            },
        ],
    )
    body |= {
        "title": "CRM",
        "_meta": {HOST: {"placements": [{"slot": "main", "route": "crm"}, {"route": "x"}]}},
    }
    assert parse_server_json(body) == ServerDescription(
        name="com.example/crm",
        title="CRM",
        description="Records of customers",
        version="1.2.0",
        url="https://{tenant}.crm.example/{region}/mcp",
        settings=(
            Setting(VARIABLE, "tenant", "Your tenant's name", True, False),
            Setting(VARIABLE, "region", "region", True, False, "eu", ("eu", "us")),
            Setting(HEADER, "X-Key", "API key", True, True),
            Setting(HEADER, "X-Plan", "X-Plan", False, False, "free"),
            Setting(HEADER, "Authorization", "Authorization", False, False, "Bearer {token}"),
            Setting(VARIABLE, "token", "token", True, True),
        ),
        placements=(Placement("main", "crm", None, None),),
        notes=("placement 2: slot is missing or has characters that a slot cannot have",),
    )


def test_a_server_without_a_title_goes_by_its_name():
    assert described(server() | {"title": " "}).title == "crm"


def test_the_first_streamable_http_remote_is_used():
    body = server()
    body["remotes"] = [{"type": "sse", "url": "https://x.example"}, None, *body["remotes"]]
    assert described(body).url == "https://crm.example/mcp"


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/mcp?a=b", "{base}/mcp", "{url}"])
def test_an_address_is_http_or_begins_with_a_variable(url):
    assert described(server(url)).url == url


@pytest.mark.parametrize(
    "url",
    [
        *(None, 5, "", "ftp://x.example", "javascript:alert(1)", "//x.example", "/mcp", "https://"),
        *("https://x.example/a b", "https://x.example/\n", "https://x.example/é", "https://x\\y"),
        *(
            "https://{a-b}.example",
            "https://{}.example",
            "https://{a",
            "https://a}",
            "https://{{a}}",
        ),
        "https://x.example/" + "x" * 2_000,
    ],
)
def test_any_other_address_refuses_the_file(url):
    assert isinstance(parse_server_json(server(url)), Refusal)


@pytest.mark.parametrize(
    "body",
    [
        *(None, [], "x", {}, server() | {"name": "crm"}, server() | {"name": 5}),
        *(server() | {"name": "a/b/c"}, server() | {"name": "x/" + "y" * 200}),
        *(server() | {"remotes": None}, server() | {"remotes": {}}, server() | {"remotes": [5]}),
        server(type="sse"),
        server() | {"remotes": None, "packages": [{"transport": {"type": "stdio"}}]},
    ],
)
def test_a_file_without_a_server_to_reach_is_refused_in_words(body):
    refusal = parse_server_json(body)
    assert isinstance(refusal, Refusal)
    assert refusal.reason


@pytest.mark.parametrize(
    "header",
    [
        *(None, "x", {}, {"name": None}, {"name": "X Key"}, {"name": "X-Key\r\nY"}, {"name": "é"}),
        *({"name": "Host"}, {"name": "content-length"}, {"name": "Mcp-Session-Id"}),
        *({"name": "X", "value": "a\r\nY: b"}, {"name": "X", "default": "\x00"}),
        {"name": "X", "value": "x" * 10_000},
    ],
)
def test_a_header_that_cannot_be_sent_is_left_out_with_a_note(header):
    description = described(server(headers=[header, {"name": "X-Good"}]))
    assert [setting.name for setting in description.settings] == ["X-Good"]
    assert [note.startswith("header 1: ") for note in description.notes] == [True]


def test_braces_in_a_header_are_a_variable_only_where_one_is_declared():
    header = {"name": "X", "value": "{a} {b}", "variables": {"b": {}, "unused": {}}}
    settings = described(server(headers=[header])).settings
    assert [(setting.kind, setting.name) for setting in settings] == [
        (HEADER, "X"),
        (VARIABLE, "b"),
    ]


def test_each_setting_is_asked_for_once():
    description = described(
        server(
            "https://{a}.{a}.{A}.example",
            headers=[{"name": "X-Key"}, {"name": "x-key"}, *({"name": f"N{n}"} for n in range(99))],
        )
    )
    assert [setting.name for setting in description.settings][:4] == ["a", "A", "X-Key", "N0"]
    assert len(description.settings) == 2 + 32 - 1
    assert description.notes == ("only the first 32 headers are used",)


def test_a_preset_value_is_not_printed():
    description = described(server(headers=[{"name": "X-Key", "default": "hush"}]))
    assert "hush" not in repr(description)


def test_values_fill_the_known_variables_once():
    assert fill("https://{a}.{b}/{c}", {"a": "{b}", "b": "x"}) == "https://{b}.x/{c}"
    assert fill("{__proto__}{0}{}", {}) == "{__proto__}{0}{}"


def test_a_hostile_address_is_settled_in_no_time():
    started = time.process_time()
    parse_server_json(server("{a}" * 666))
    parse_server_json(server("{" * 2_000))
    parse_server_json({"name": "a" * 1_000_000})
    assert time.process_time() - started < 1


MEMBERS = st.sampled_from(
    ["name", "title", "remotes", "type", "url", "headers", "variables", "value", "choices", "_meta"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.just("streamable-http"),
    lambda inner: st.lists(inner) | st.dictionaries(MEMBERS, inner),
    max_leaves=20,
)


@given(JSON, st.dictionaries(MEMBERS, JSON), st.dictionaries(MEMBERS, JSON))
def test_no_json_makes_a_description_fail(body, changes, remote):
    parse_server_json(body)
    parse_server_json(server() | changes)
    parse_server_json(server(**{key: remote[key] for key in remote if key != "url"}))
