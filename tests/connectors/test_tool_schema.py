"""Forms made of schemas: which field an argument gets, and schemas that mean harm."""

from __future__ import annotations

import socket
import time
from uuid import uuid4

import pytest

from connectors.tool_forms import ToolForm
from connectors.tool_schema import MAX_ARGUMENTS, Kind, arguments_in, problems_in


def one(part, **whole):
    """The one argument of a schema with one property."""
    [argument] = arguments_in({"type": "object", "properties": {"x": part}, **whole}) or []
    return argument


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"type": "string"}, Kind.TEXT),
        ({"type": ["string", "null"]}, Kind.TEXT),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, Kind.TEXT),
        ({"$ref": "#/$defs/name"}, Kind.TEXT),
        ({"type": "number"}, Kind.NUMBER),
        ({"type": "integer"}, Kind.INTEGER),
        ({"type": "boolean"}, Kind.BOOLEAN),
        ({"enum": ["a", 1, None]}, Kind.CHOICE),
        ({"const": "a"}, Kind.CHOICE),
        ({"type": "array", "items": {"type": "string"}}, Kind.LINES),
        ({"type": "array", "items": {"$ref": "#/$defs/name"}}, Kind.LINES),
        ({"type": "array", "items": {"type": "integer"}}, Kind.JSON),
        ({"type": "array"}, Kind.JSON),
        ({"type": "object", "properties": {"y": {"type": "string"}}}, Kind.JSON),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, Kind.JSON),
        ({"enum": [{"a": 1}]}, Kind.JSON),
        ({"enum": [str(number) for number in range(1000)]}, Kind.JSON),
        # What is no schema at all is still something that people can fill in.
        ({}, Kind.JSON),
        (True, Kind.JSON),
        (None, Kind.JSON),
        ({"type": 5}, Kind.JSON),
        ({"type": []}, Kind.JSON),
        ({"type": [[]]}, Kind.JSON),
        ({"$ref": "#"}, Kind.JSON),
        ({"$ref": "#/$defs/loop"}, Kind.JSON),
        ({"$ref": "#/$defs/nowhere/~0/~1"}, Kind.JSON),
        ({"$ref": "https://example.com/schema"}, Kind.JSON),
        ({"$ref": 5}, Kind.JSON),
    ],
)
def test_each_argument_gets_the_field_that_fits(part, kind):
    definitions = {"name": {"type": "string"}, "loop": {"$ref": "#/$defs/loop"}}
    assert one(part, **{"$defs": definitions}).kind is kind


def test_words_beside_a_reference_say_more_than_those_behind_it():
    part = {"$ref": "#/$defs/name", "description": "Here"}
    found = one(part, **{"$defs": {"name": {"type": "string", "description": "There"}}})
    assert (found.kind, found.description) == (Kind.TEXT, "Here")


@pytest.mark.parametrize(
    "schema",
    [
        None,
        True,
        [],
        {"properties": []},
        {"oneOf": [{"required": ["a"]}]},
        {"properties": {f"p{number}": {} for number in range(MAX_ARGUMENTS + 1)}},
    ],
)
def test_what_no_form_fits_is_given_as_json(schema):
    assert arguments_in(schema) is None


def filled(schema, **entered):
    """The form, filled in by argument names."""
    blank = ToolForm(schema=schema)
    keys = {argument.name: key for key, argument in blank.by_field.items()} | {"whole": "whole"}
    posted = {keys[name]: value for name, value in entered.items()}
    return ToolForm({"once": str(uuid4()), **posted}, schema=schema)


def sent(form):
    """What a call would carry."""
    assert form.is_valid(), form.errors
    return form.arguments()


def properties(**parts):
    return {"type": "object", "properties": parts}


@pytest.mark.parametrize(
    ("part", "text", "value"),
    [
        ({"type": "string"}, " a\r\nb ", " a\nb "),
        ({"type": "string"}, "<b>\u202e", "<b>\u202e"),
        ({"type": "integer"}, " 42 ", 42),
        ({"type": "integer"}, "-0", 0),
        ({"type": "number"}, "2.50", 2.5),
        ({"type": "number"}, "1e3", 1000.0),
        ({"type": "boolean"}, "0", True),
        ({"type": "boolean"}, "1", False),
        ({"enum": ["a", 1, "1"]}, "1", 1),
        ({"enum": ["a", 1, "1"]}, "2", "1"),
        ({"enum": ["a", None]}, "1", None),
        ({"type": "array", "items": {"type": "string"}}, "a\r\n\r\n b\r\n", ["a", " b"]),
        ({"type": "object"}, '{"a": [1, null]}', {"a": [1, None]}),
    ],
)
def test_what_is_entered_is_what_is_sent(part, text, value):
    form = filled(properties(x=part), x=text)
    assert form.is_valid(), form.errors
    assert form.arguments() == {"x": value}
    assert type(form.arguments()["x"]) is type(value)


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ({"type": "integer"}, "4.5"),
        ({"type": "integer"}, "9" * 5000),
        ({"type": "integer"}, "four"),
        ({"type": "integer", "maximum": 5}, "6"),
        ({"type": "number"}, "NaN"),
        ({"type": "number"}, "1e999"),
        ({"type": "number"}, "true"),
        ({"type": "boolean"}, "yes"),
        ({"enum": ["a"]}, "1"),
        ({"enum": ["a"]}, "-1"),
        ({"enum": ["a"]}, "a"),
        ({"type": "object"}, "{"),
        ({"type": "object"}, "[]"),
        ({"type": "object"}, '{"a": Infinity}'),
        ({"type": "object"}, "[" * 100_000),
        ({"type": "string", "maxLength": 3}, "four"),
        ({"type": "string"}, "a\x00b"),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 1}, "a\nb"),
    ],
)
def test_what_does_not_fit_is_said_at_its_field(part, text):
    form = filled(properties(x=part), x=text)
    assert not form.is_valid()
    assert list(form.errors) == ["a0"]


def test_an_optional_argument_left_empty_is_not_sent_and_a_required_one_is_asked_for():
    schema = {**properties(a={"type": "string"}, b={"type": "boolean"}), "required": ["b"]}
    assert sent(filled(schema, b="1")) == {"b": False}
    form = filled(schema, a="x")
    assert form.errors == {"a1": ["Fill in b."]}


def test_defaults_are_filled_in():
    schema = properties(
        a={"type": "string", "default": "x"},
        b={"type": "boolean", "default": False},
        c={"enum": [1, True], "default": True},
        d={"type": "array", "items": {"type": "string"}, "default": ["a", "b"]},
        e={"type": "object", "default": {"k": 1}},
        f={"type": "string", "default": 5},
    )
    form = ToolForm(schema=schema)
    assert [form[key].value() for key in form.by_field] == ["x", "1", "1", "a\nb", '{"k": 1}', ""]


def test_names_that_mean_something_elsewhere_are_only_names():
    names = ["once", "whole", "a0", "__proto__", "csrfmiddlewaretoken", "confirmed", "<b>", ""]
    form = filled(properties(**{name: {"type": "string"} for name in names}), **{"<b>": "x"})
    assert form.is_valid(), form.errors
    assert form.arguments() == {"<b>": "x"}


def test_all_arguments_as_one_object_have_to_be_one():
    schema = {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert sent(filled(schema, whole='{"a": 1}')) == {"a": 1}
    assert not filled(schema, whole='{"c": 1}').is_valid()
    assert not filled(schema, whole="[1]").is_valid()


def nested(depth):
    part: dict[str, object] = {"type": "object"}
    for _ in range(depth):
        part = {"type": "object", "properties": {"a": part}}
    return part


def doubling(depth):
    """Each level is asked twice for the next one."""
    steps = {f"s{n}": {"allOf": [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(depth)}
    return {"$ref": "#/$defs/s0", "$defs": {**steps, f"s{depth}": {}}}


HARMFUL = [
    {"$ref": "#"},
    {"allOf": [{"$ref": "#"}]},
    {"$dynamicRef": "#"},
    doubling(60),
    {"properties": {"a": {"pattern": "(a+)+$"}}},
    {"patternProperties": {"(a+)+$": {}}, "additionalProperties": False},
    {"patternProperties": {"(a+)+$": {}}, "unevaluatedProperties": False},
    {"properties": {"a": {"pattern": "("}}},
    {"required": 5, "minimum": "x", "properties": [1]},
    {"type": "nonsense"},
    {"$schema": ["x"]},
    {"$schema": "https://example.com/own", "$id": "urn:x", "$anchor": 5},
    {"properties": {"b": {"uniqueItems": True}}},
    {"properties": {"b": {"items": doubling(40)}}},
    nested(900),
    5,
]


@pytest.mark.parametrize("schema", HARMFUL, ids=range(len(HARMFUL)))
def test_a_harmful_schema_takes_no_time(schema):
    arguments = {"a": "a" * 50 + "!", "a" * 50 + "!": 1, "b": [{"n": n} for n in range(5_000)]}
    started = time.perf_counter()
    problems_in(schema, arguments)
    ToolForm(schema=schema).as_p()
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$schema"])
def test_nothing_is_fetched_for_a_schema(keyword):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/schema"
        problems_in({keyword: url}, {"a": 1})
        problems_in({"$id": url, "$ref": "other"}, {"a": 1})
        with pytest.raises(TimeoutError):
            listener.accept()


def test_problems_name_the_argument():
    schema = {**properties(a={"type": "integer"}), "required": ["b"]}
    problems = problems_in(schema, {"a": "x"})
    assert problems is not None
    assert [(each.argument, each.words) for each in problems] == [
        ("a", "'x' is not of type 'integer'"),
        (None, "'b' is a required property"),
    ]
