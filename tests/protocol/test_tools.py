from __future__ import annotations

from typing import Any

import pytest

from connectors.protocol.tools import is_allowed, reaches, visible_to_model


def ui(visibility: Any) -> dict[str, Any]:
    return {"ui": {"visibility": visibility}}


@pytest.mark.requirement("R-130", "R-132", "R-133")
@pytest.mark.parametrize(
    "allowed_tools",
    [None, ["nb__read_resource"], ["crm__*", "nb__*"], ["*"], ["nb__read_[r]esource"]],
)
def test_a_list_that_covers_the_agents_own_read_reaches_connectors(allowed_tools):
    assert reaches(allowed_tools)


@pytest.mark.requirement("R-131", "R-134")
@pytest.mark.parametrize(
    "allowed_tools",
    [[], ["crm__send"], ["nb__read_resource_"], ["NB__*"], ["read_mcp_resource"], ["nb__list*"]],
)
def test_any_other_list_does_not(allowed_tools):
    assert not reaches(allowed_tools)


def test_a_list_of_allowed_tools_takes_globs():
    assert is_allowed(["crm__*"], "crm__send")
    assert not is_allowed(["crm__*"], "mail__send")


@pytest.mark.parametrize(
    "meta",
    [
        *(None, [], {}, {"ui": None}, {"ui": {}}, {"ui": ["app"]}, {"visibility": ["app"]}),
        *map(ui, [None, "app", {}, ["model"], ["app", "model"]]),
    ],
)
def test_a_tool_is_visible_to_models_unless_it_says_otherwise(meta):
    assert visible_to_model(meta)


@pytest.mark.parametrize("visibility", [[], ["app"], ["Model"], [["model"]], [None]])
def test_a_visibility_list_without_model_hides_a_tool(visibility):
    assert not visible_to_model(ui(visibility))
