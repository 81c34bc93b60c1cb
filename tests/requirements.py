"""What docs/requirements.toml promises, and which tests say that they prove it.

`scripts/requirements` prints what is open; `--close` drops the flag of what has tests by now.
Read from the source, without running or importing a test.
"""

from __future__ import annotations

import argparse
import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DECLARED = ROOT / "docs" / "requirements.toml"


def declared() -> dict[str, dict[str, str]]:
    """Give each requirement's table by id."""
    return tomllib.loads(DECLARED.read_text(encoding="utf-8"))


def proven() -> dict[str, list[str]]:
    """Give, by id, the places `file:line` of the markers that name it."""
    places: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for line, identifier in markers_of(path.read_text(encoding="utf-8")):
            places.setdefault(identifier, []).append(f"{path.relative_to(ROOT)}:{line}")
    return places


def markers_of(source: str) -> Iterator[tuple[int, str]]:
    """Find the ids in calls of `pytest.mark.requirement`, wherever they stand.

    Raises ValueError for an id that is not written out: it could not be counted.
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not is_marker(node.func):
            continue
        for argument in node.args:
            if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
                raise ValueError(f"line {node.lineno}: write each requirement's id out")
            yield node.lineno, argument.value


def is_marker(function: ast.expr) -> bool:
    return ast.unparse(function).endswith("mark.requirement")


def without_flags(toml: str, identifiers: set[str]) -> str:
    """Drop the `open` line from the tables of these ids."""

    def settle(table: re.Match[str]) -> str:
        return table[1] + table[3] if table[2] in identifiers else table[0]

    return re.sub(r'(\[([\w-]+)\]\n(?:[^[\n].*\n)*?)open = ".*"\n((?:[^[\n].*\n)*)', settle, toml)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--close", action="store_true", help="drop the flag of those with tests")
    options = parser.parse_args()
    places = proven()
    still_open = {key: table for key, table in declared().items() if "open" in table}
    for identifier, table in still_open.items():
        found = ", ".join(places.get(identifier, [])) or table["open"]
        print(f"{identifier:6} {found}\n       {table['sentence']}")
    settled = still_open.keys() & places.keys()
    print(f"{len(still_open)} open, {len(settled)} of them with tests.")
    if options.close:
        toml = DECLARED.read_text(encoding="utf-8")
        DECLARED.write_text(without_flags(toml, settled), encoding="utf-8")


if __name__ == "__main__":
    main()
