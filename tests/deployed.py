"""What deploy/ says to run, read from its files: tests start that, and nothing of their own."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from string import Template

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
UNITS = DEPLOY / "systemd"


def procfile() -> dict[str, str]:
    """The command line of each process of the Procfile, as a shell gets it."""
    lines = (DEPLOY / "Procfile").read_text(encoding="utf-8").splitlines()
    said = [line for line in lines if line and not line.startswith("#")]
    return {name: words.strip() for name, _, words in (line.partition(":") for line in said)}


def unit(name: str) -> dict[str, str]:
    """The settings of a systemd unit; a line that ends in a backslash goes on in the next."""
    text = (UNITS / name).read_text(encoding="utf-8")
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    said = [line for line in lines if "=" in line and not line.startswith("#")]
    return {key: value for key, _, value in (line.partition("=") for line in said)}


def unit_command(name: str, instance: str, setting: str = "ExecStart") -> list[str]:
    """The command of a unit, as systemd runs it for an instance."""
    return words_of(unit(name)[setting].replace("%i", instance).replace("%%", "%"))


def words_of(command: str, variables: Mapping[str, str] | None = None) -> list[str]:
    """The words of a command line; programs of the virtual environment are the ones of this."""
    program, *words = shlex.split(Template(command).safe_substitute(variables or {}))
    here = Path(sys.executable).with_name(Path(program).name)
    return [str(here) if here.exists() else program, *words]
