"""Rows of the tables of docs/performance.md: what was measured, beside what was promised."""

from __future__ import annotations

missed: list[str] = []
"""The names of the rows so far whose target was not met."""


def head(title: str) -> None:
    """Begin a table of rows as `row` prints them."""
    print(f"| {title} | measured | target | |")
    print("|---|---|---|---|")


def row(name: str, measured: str, target: str, *, is_met: bool) -> None:
    print(f"| {name} | {measured} | {target} | {'met' if is_met else '**missed**'} |")
    if not is_met:
        missed.append(name)


def note(name: str, measured: str) -> None:
    """A row without a target."""
    print(f"| {name} | {measured} | | |")
