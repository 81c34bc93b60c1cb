"""Every requirement has a test, and every test that names one names one that exists."""

from __future__ import annotations

import tomllib

import pytest

from .requirements import declared, markers_of, proven, without_flags


def test_every_id_that_a_test_names_is_declared() -> None:
    declarations = declared()
    assert {key: at for key, at in proven().items() if key not in declarations} == {}


def test_every_requirement_has_a_test_or_says_why_not() -> None:
    places = proven()
    untested = [key for key, table in declared().items() if "open" not in table]
    assert [key for key in untested if key not in places] == []


def test_no_requirement_with_a_test_is_still_called_open() -> None:
    called_open = [key for key, table in declared().items() if "open" in table]
    places = proven()
    assert [key for key in called_open if key in places] == [], "scripts/requirements --close"


def test_each_declaration_has_a_source_and_one_sentence() -> None:
    for key, table in declared().items():
        assert table.keys() <= {"source", "sentence", "open"}, key
        assert table["source"] in {"specification", "decision"}, key
        assert table["sentence"].endswith("."), key
        assert all(text.strip() for text in table.values()), key


def test_markers_are_found_wherever_they_stand() -> None:
    source = """
pytestmark = pytest.mark.requirement("A")
@pytest.mark.requirement("B", "C")
def test_one(): ...
CASES = [pytest.param(1, marks=pytest.mark.requirement("D"))]
"""
    assert sorted(markers_of(source)) == [(2, "A"), (3, "B"), (3, "C"), (5, "D")]


def test_an_id_that_is_not_written_out_is_refused() -> None:
    with pytest.raises(ValueError, match="line 1"):
        list(markers_of("pytest.mark.requirement(*IDS)"))


def test_dropping_a_flag_touches_nothing_else() -> None:
    toml = '# why\n\n[A]\nsentence = "a."\nopen = "x"\n\n[B]\nopen = "y"\nsentence = "[b]."\n'
    assert tomllib.loads(without_flags(toml, {"A"})) == {
        "A": {"sentence": "a."},
        "B": {"open": "y", "sentence": "[b]."},
    }
    assert without_flags(toml, {"B"}) == toml.replace('open = "y"\n', "")
    assert without_flags(toml, set()) == toml
