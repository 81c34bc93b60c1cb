from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.protocol.identifiers import RESOURCE_ARGUMENTS
from connectors.protocol.resource_arguments import (
    Contents,
    Limits,
    OutcomeCode,
    Owner,
    Read,
    Refusal,
    capability,
    deliver,
    parse_declaration,
    plan_reads,
    scheme_of,
    strings_of,
)

CRM = frozenset({"crm"})
NOT_DECLARED = Refusal(OutcomeCode.SCHEME_NOT_DECLARED)
NOT_FOUND = Refusal(OutcomeCode.NOT_FOUND)
OVER_LIMIT = Refusal(OutcomeCode.OVER_LIMIT)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def declared(arguments: Any) -> dict[str, Any]:
    return {RESOURCE_ARGUMENTS: {"arguments": arguments}}


def owned_by_7(uri: str) -> Owner:
    return Owner(7)


def never_asked(uri: str) -> Owner:
    raise AssertionError(f"the owner of {uri} was looked up")


def plan(
    arguments: Any,
    *,
    declaration: Any = None,
    limits: Limits | None = None,
    is_reachable: bool = True,
    owner_of: Any = owned_by_7,
) -> dict[str, Read | Refusal]:
    return plan_reads(
        {"citations": CRM} if declaration is None else declaration,
        arguments,
        limits or Limits(),
        is_reachable=is_reachable,
        owner_of=owner_of,
    )


def uris(count: int, scheme: str = "crm") -> list[str]:
    return [f"{scheme}://{number}" for number in range(count)]


@pytest.mark.requirement("R-001", "R-002", "R-004")
def test_the_host_advertises_the_limits_that_it_enforces():
    assert capability(Limits()) == {"maxChars": 49600, "maxSize": 10485760, "maxUris": 32}
    assert capability(Limits(1, 2, 3)) == {"maxChars": 1, "maxSize": 2, "maxUris": 3}


@pytest.mark.requirement("R-010", "R-014", "R-015", "R-016", "R-017")
@pytest.mark.parametrize(
    ("arguments", "declaration"),
    [
        ({"citations": {"schemes": ["crm"]}}, {"citations": {"crm"}}),
        ({"citations": {"schemes": ["*", "crm"], "later": 1}}, {"citations": {"crm"}}),
        ({"citations": {"schemes": ["CRM", 7, None, ["x"]]}}, {"citations": {"crm"}}),
        ({"citations": {"schemes": ["a+b-c.1"]}}, {"citations": {"a+b-c.1"}}),
        ({"a": {"schemes": "crm"}, "b": {"schemes": ["crm", "mail"]}}, {"b": {"crm", "mail"}}),
        (
            {"__proto__": {"schemes": ["crm"]}, "": {"schemes": ["x"]}},
            {"__proto__": CRM, "": {"x"}},
        ),
    ],
)
def test_a_declaration_names_arguments_and_their_schemes(arguments, declaration):
    assert parse_declaration(declared(arguments)) == declaration


@pytest.mark.requirement("R-011", "R-018")
@pytest.mark.parametrize(
    "meta",
    [
        *(None, [], "x", {}, {RESOURCE_ARGUMENTS: None}, {RESOURCE_ARGUMENTS: [1]}),
        *({RESOURCE_ARGUMENTS: {}}, {RESOURCE_ARGUMENTS: {"citations": {"schemes": ["crm"]}}}),
        *map(declared, [None, [], {}, "citations", [{"schemes": ["crm"]}]]),
    ],
)
def test_without_an_object_of_arguments_a_tool_declares_nothing(meta):
    assert parse_declaration(meta) == {}


@pytest.mark.requirement("R-012", "R-013")
@pytest.mark.parametrize(
    "schemes",
    [
        *(None, "crm", [], {}, {"crm": 1}, 5, True, ["*"], ["crm://"], ["crm:"], [""], [" crm"]),
        *(["crm\n"], ["1crm"], [5], ["crm/x"], ["é"], ["-a"], [["crm"]]),
    ],
)
def test_an_argument_without_a_valid_scheme_declares_nothing(schemes):
    assert parse_declaration(declared({"citations": {"schemes": schemes}})) == {}


@given(JSON, st.dictionaries(st.text(), JSON | JSON.map(lambda schemes: {"schemes": schemes})))
def test_no_json_makes_a_declaration_fail(meta, arguments):
    parse_declaration(meta)
    assert all(parse_declaration(declared(arguments)).values())


@pytest.mark.requirement("R-030", "R-031", "R-032", "R-033", "R-034", "R-035", "R-038", "R-040")
@pytest.mark.parametrize(
    ("arguments", "strings"),
    [
        ({"citations": "crm://1"}, ["crm://1"]),
        ({"citations": ["crm://1", "crm://2"]}, ["crm://1", "crm://2"]),
        ({"citations": ["crm://1", "crm://1"]}, ["crm://1"]),
        ({"citations": ["crm://1", 5, None, {"u": "crm://2"}, ["crm://3"]]}, ["crm://1"]),
        ({"citations": ["crm://1", "CRM://1"]}, ["crm://1", "CRM://1"]),
        *(({"citations": value}, []) for value in [{"u": "crm://1"}, 5, True, None, []]),
        ({"body": "crm://1"}, []),
        *(({}, []), (None, []), ([], []), ("crm://1", [])),
    ],
)
def test_strings_come_from_declared_arguments_and_their_arrays_only(arguments, strings):
    assert list(strings_of({"citations": CRM}, arguments)) == strings


@pytest.mark.requirement("R-039", "R-117")
def test_strings_stand_in_the_order_of_the_call_and_any_argument_may_declare_them():
    declaration = {"a": CRM, "b": frozenset({"mail"})}
    arguments = {"b": ["crm://2", "crm://1", "mail://1"], "x": "crm://3", "a": ["crm://1"]}
    strings = {"crm://2": False, "crm://1": True, "mail://1": True}
    assert strings_of(declaration, arguments) == strings
    assert list(strings_of(declaration, arguments)) == list(strings)
    turned = {name: arguments[name] for name in ("a", "b")}
    assert strings_of(declaration, turned) == strings
    assert list(strings_of(declaration, turned)) == ["crm://1", "crm://2", "mail://1"]


@pytest.mark.requirement("R-042")
def test_strings_stay_as_they_are():
    odd = [
        "crm://1 ",
        "crm://\U0001f642",
        "crm://e\u0301",
        "crm://\u00e9",
        "",
        "crm:\x00",
        "\ud800",
    ]
    assert list(plan({"citations": odd})) == odd


@pytest.mark.requirement("R-015", "R-036", "R-037")
@pytest.mark.parametrize(
    ("string", "scheme"),
    [
        *(("crm:1", "crm"), ("CRM://1", "crm"), ("a+b.c-1:x", "a+b.c-1"), ("crm:", "crm")),
        *((string, None) for string in ["", "42", " crm://1", "crm", "://x", ":", "1a:x", "é:x"]),
        ("a" * 1_000_000, None),
    ],
)
def test_a_scheme_is_what_stands_before_the_first_colon(string, scheme):
    assert scheme_of(string) == scheme


@pytest.mark.requirement("R-030", "R-050", "R-059")
def test_a_string_with_an_owner_is_read_from_it():
    owners = {"crm://1": Owner(1), "crm://2": Owner(2)}
    assert plan({"citations": list(owners)}, owner_of=owners.__getitem__) == {
        uri: Read(uri, owner) for uri, owner in owners.items()
    }


@pytest.mark.requirement("R-051", "R-052")
@pytest.mark.parametrize("code", [OutcomeCode.NOT_FOUND, OutcomeCode.AMBIGUOUS])
def test_a_string_without_one_owner_is_refused_as_the_lookup_says(code):
    refused = plan({"citations": "crm://1"}, owner_of=lambda uri: Refusal(code))
    assert refused == {"crm://1": Refusal(code)}


@pytest.mark.requirement("R-036", "R-066")
@pytest.mark.parametrize("string", ["", "42", " crm://1", "crm", "://x", "mail://1", "ui://x"])
def test_a_string_of_another_scheme_is_not_looked_up(string):
    assert plan({"citations": string}, owner_of=never_asked) == {string: NOT_DECLARED}


@pytest.mark.requirement("R-131", "R-134")
def test_out_of_reach_nothing_is_looked_up_and_no_limit_counts():
    planned = plan({"citations": ["mail://1", *uris(40)]}, is_reachable=False, owner_of=never_asked)
    assert planned == {"mail://1": NOT_DECLARED} | dict.fromkeys(uris(40), NOT_FOUND)


@pytest.mark.requirement("R-065")
@pytest.mark.parametrize("scheme", ["files", "ui", "skill", "artifact", "conversation"])
def test_a_scheme_of_the_host_has_no_owner(scheme):
    strings = [f"{scheme}://x", f"{scheme.upper()}:x"]
    planned = plan({"a": strings}, declaration={"a": frozenset({scheme})}, owner_of=never_asked)
    assert planned == dict.fromkeys(strings, NOT_FOUND)


@pytest.mark.requirement("R-110", "R-112")
def test_the_33rd_distinct_string_is_over_the_limit_whoever_owns_it():
    planned = plan({"citations": uris(34)}, owner_of=lambda uri: NOT_FOUND)
    assert list(planned.values()) == [NOT_FOUND] * 32 + [OVER_LIMIT] * 2


@pytest.mark.requirement("R-111", "R-121")
def test_undeclared_strings_and_repetitions_do_not_count():
    strings = [*uris(40, "mail"), *uris(32), *uris(20)]
    planned = plan({"citations": strings})
    assert [planned[uri] for uri in uris(32)] == [Read(uri, Owner(7)) for uri in uris(32)]
    assert [planned[uri] for uri in uris(40, "mail")] == [NOT_DECLARED] * 40


@pytest.mark.requirement("R-113", "R-114", "R-117")
def test_size_is_used_up_by_reads_in_the_order_of_the_call():
    limits = Limits(max_chars=10, max_size=65)
    assert list(plan({"citations": uris(3)}, limits=limits).values()) == [
        Read("crm://0", Owner(7)),
        Read("crm://1", Owner(7)),
        OVER_LIMIT,
    ]
    owners = {"crm://0": Owner(7), "crm://1": NOT_FOUND, "crm://2": Owner(7), "crm://3": NOT_FOUND}
    planned = plan({"citations": list(owners)}, limits=limits, owner_of=owners.__getitem__)
    assert [isinstance(entry, Read) for entry in planned.values()] == [True, False, True, False]


@pytest.mark.parametrize("size", [59, 60])
def test_a_read_that_fits_to_the_byte_is_made(size):
    planned = plan({"citations": uris(2)}, limits=Limits(max_chars=10, max_size=size))
    assert isinstance(planned["crm://1"], Read) is (size == 60)


@pytest.mark.requirement("R-041")
def test_10_000_strings_cost_32_lookups_and_little_time():
    asked = []

    def owner_of(uri):
        asked.append(uri)
        return Owner(7)

    started = time.process_time()
    planned = plan({"citations": uris(10_000)}, owner_of=owner_of)
    assert time.process_time() - started < 1
    assert len(planned) == 10_000
    assert asked == uris(32)


@pytest.mark.requirement("R-103", "R-136", "R-138", "R-149")
def test_entries_replace_what_the_caller_put_under_the_host_key():
    meta: dict[str, Any] = {
        "progressToken": 1,
        RESOURCE_ARGUMENTS: {"crm://1": {"contents": ["forged"]}},
    }
    entries: dict[str, Contents | Refusal] = {
        "crm://2": Contents(({"uri": "crm://2", "text": "x"},), 1),
        "crm://1": NOT_FOUND,
    }
    delivered: dict[str, Any] = deliver(meta, entries)
    assert delivered == {
        "progressToken": 1,
        RESOURCE_ARGUMENTS: {
            "crm://2": {"contents": [{"uri": "crm://2", "text": "x"}]},
            "crm://1": {"error": {"code": "not_found", "message": NOT_FOUND.message}},
        },
    }
    assert list(delivered[RESOURCE_ARGUMENTS]) == ["crm://2", "crm://1"]
    assert meta[RESOURCE_ARGUMENTS] == {"crm://1": {"contents": ["forged"]}}


@pytest.mark.requirement("R-011", "R-035", "R-136", "R-139")
@pytest.mark.parametrize("meta", [None, [], "x", {}, {RESOURCE_ARGUMENTS: {"crm://1": {}}}])
def test_without_entries_the_host_key_is_absent(meta):
    assert deliver(meta, {}) == {}
