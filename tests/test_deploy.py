"""What operators read and run names what there is."""

from __future__ import annotations

import re
from argparse import _SubParsersAction
from pathlib import Path

from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand

from tests.deployed import DEPLOY, procfile, unit

ROOT = Path(__file__).parent.parent
MANUAL = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
SETTINGS = (ROOT / "overview" / "settings.py").read_text(encoding="utf-8")
APPS = ("overview", "connectors", "workspaces")
# Django's and Celery's own ways to say it, and what only developers set.
NOT_FOR_OPERATORS = {"DEBUG"}


def variables():
    """Everything that the settings take from the environment."""
    named = re.findall(r'env(?:\.\w+)?\(\s*"([A-Z_]+)"', SETTINGS)
    return {*named, *re.findall(r'kept_key\("([A-Z_]+)"', SETTINGS)}


def variables_of_commands():
    """What code beside the settings looks up. OpenTelemetry's own are as its specification says."""
    code = [path for app in APPS for path in (ROOT / app).rglob("*.py")]
    text = "".join(path.read_text(encoding="utf-8") for path in code)
    named = set(re.findall(r'environ(?:\.get)?[\[(]"([A-Z_]+)"', text))
    return {each for each in named if not each.startswith("OTEL_")}


def test_every_variable_of_a_command_is_documented():
    assert "CONNECTOR_BEARER" in variables_of_commands()
    assert {each for each in variables_of_commands() if f"`{each}`" not in MANUAL} == set()


def test_every_setting_is_documented():
    # "`A_B`, `…_C`" stands for A_B and A_C.
    endings = re.findall(r"`…(_[A-Z_]+)`", MANUAL)
    documented = {*re.findall(r"[A-Z][A-Z_]{3,}", MANUAL)}
    missing = variables() - documented - NOT_FOR_OPERATORS
    assert {each for each in missing if not each.endswith(tuple(endings))} == set()


def test_the_deployments_set_variables_that_exist():
    compose = (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    block = compose.split("environment: &environment")[1].split("secrets:")[0]
    named = {each.removesuffix("_FILE") for each in re.findall(r"^    ([A-Z_]+):", block, re.M)}
    assert named <= variables()
    assert len(named) > 5


def test_each_deployment_starts_web_worker_and_clock():
    started = {
        path.name: path.read_text(encoding="utf-8")
        for path in [ROOT / "deploy" / "Procfile", *(ROOT / "deploy" / "systemd").iterdir()]
    }
    text = "\n".join(started.values())
    for words in ["uvicorn overview.asgi:application", "-A overview worker", "-A overview beat"]:
        assert text.count(words) == 2, words


def test_a_proxy_hears_of_a_stop_in_time_and_nobody_kills_the_process_meanwhile():
    caddyfile = (DEPLOY / "Caddyfile").read_text(encoding="utf-8")
    compose = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    systemd = unit("overview-web@.service")
    noticed = sum(map(int, re.findall(r"health_(?:interval|timeout) (\d+)s", caddyfile)))
    graceful = int(re.search(r"--timeout-graceful-shutdown (\d+)", procfile()["web"])[1])
    of_web = re.search(r"x-web: &web\n(.+?)\n\n", compose, re.S)[1]
    for drain, killed in [
        re.search(r'DRAIN_SECONDS: "(\d+)".+grace_period: (\d+)s', of_web, re.S).groups(),
        (systemd["Environment"].removeprefix("WEB_DRAIN_SECONDS="), systemd["TimeoutStopSec"]),
    ]:
        assert 0 < noticed < int(drain)
        assert int(drain) + graceful < int(killed)


def options_of(parser):
    of_django = BaseCommand().create_parser("manage.py", "x")
    theirs = {text for action in of_django._actions for text in action.option_strings}
    ours = {text for action in parser._actions for text in action.option_strings}
    return {text for text in ours - theirs if text.startswith("--")}


def commands():
    """The options of each command, as "connector add" or "serve"."""
    found = {}
    for name, app in get_commands().items():
        if app in APPS:
            parser = load_command_class(app, name).create_parser("manage.py", name)
            acts = [each for each in parser._actions if isinstance(each, _SubParsersAction)]
            parts = {f"{name} {act}": of for each in acts for act, of in each.choices.items()}
            found |= {words: options_of(of) for words, of in (parts or {name: parser}).items()}
    return found


def test_every_command_and_each_of_its_options_is_documented():
    block = MANUAL.partition("Commands, each with `--json`:")[2].partition("`connector add`: ")[0]
    with_json, _, without = block.partition("And without:")
    documented = {}
    for text, also in ((with_json, {"--json"}), (without, set[str]())):
        for line in re.sub(r"\n +", " ", text).splitlines():
            if words := re.match(r"manage\.py (\S+)(?: ([a-z|]+))?", line):
                for act in (words[2] or "").split("|"):
                    options = set(re.findall(r"--[a-z-]+", line))
                    documented[f"{words[1]} {act}".strip()] = options | also
    assert documented == commands()
