"""Each command line and each file of deploy/ is held to what there is."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import pytest

from tests.deployed import DEPLOY, ROOT, UNITS, procfile, unit, unit_command, words_of
from tests.hosts import free_port
from tests.production.test_many_processes import until
from tests.stack import Managed, is_ready

COMPOSE = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
PORT = 8001


def dockerfile_command():
    said = DOCKERFILE.split("CMD ")[1].replace("\\\n", "")
    program, *words = json.loads(said)
    return [*words_of(program), *words]


def compose_commands():
    """By the name of the service."""
    return dict(re.findall(r"^  (\w+):\n(?:    .*\n)*?    command: (.+)$", COMPOSE, re.M))


def without(words, *options):
    """Command words but for these options and what they are given."""
    dropped = {at + n for at, word in enumerate(words) if word in options for n in (0, 1)}
    return [word for at, word in enumerate(words) if at not in dropped]


def test_all_deployments_run_what_the_tests_run():
    """The tests' stack is started from the Procfile; the others differ in where they listen, whose
    headers they believe, and what they are called."""
    web = without(words_of(procfile()["web"]), "--port")
    worker = without(words_of(procfile()["worker"]), "-n")
    beat = words_of(procfile()["beat"])
    believing = ["--host", "--port", "--forwarded-allow-ips"]
    assert without(dockerfile_command(), *believing) == [*web, "--proxy-headers"]
    compose = {name: words_of(command) for name, command in compose_commands().items()}
    assert without(compose["worker"], "-n") == worker
    assert compose["beat"] == beat
    systemd = unit_command("overview-web@.service", "1")
    assert without(systemd, *believing) == [*web, "--proxy-headers"]
    assert systemd[systemd.index("--port") + 1] == str(PORT)
    assert without(unit_command("overview-worker@.service", "1"), "-n") == worker
    assert unit_command("overview-beat.service", "") == beat


def test_two_processes_of_a_kind_are_called_differently():
    names = set()
    for number in ("1", "2"):
        words = unit_command("overview-worker@.service", number)
        names.add(words[words.index("-n") + 1])
        words = words_of(procfile()["worker"], {"PORT": number})
        names.add(words[words.index("-n") + 1])
    assert names == {"worker1@%h", "worker2@%h"}


def test_the_image_has_all_that_the_site_needs(site, tmp_path):
    """What the Dockerfile copies, made ready by its own steps, serves pages with their files."""
    image = tmp_path / "srv"
    image.mkdir()
    for line in re.findall(r"^COPY (.+)$", DOCKERFILE, re.M):
        *sources, target = line.split()
        for source in sources:
            here, there = ROOT / source, image / target / (source if target == "./" else "")
            shutil.copytree(here, there) if here.is_dir() else shutil.copy(here, image)
    environment = {**site.stack.environment, "VAR_DIR": str(tmp_path / "var")}
    collect = [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity", "0"]
    # As in the image: without any of the settings.
    subprocess.run(collect, cwd=image, env={"VAR_DIR": environment["VAR_DIR"]}, check=True)

    words = dockerfile_command()
    port = free_port()
    words[words.index("--host") + 1] = "127.0.0.1"
    words[words.index("--port") + 1] = str(port)
    web = Managed("image", words, environment, tmp_path, cwd=image)
    web.start()
    try:
        url = f"http://127.0.0.1:{port}"
        until(lambda: is_ready(url), 60)
        page = site.get("/w/acme/", url)
        for path in re.findall(r'(?:href|src)="(/static/[^"]+)"', page):
            assert site.get(path, url)
        probe = health_command().replace("127.0.0.1:8000", f"127.0.0.1:{port}")
        subprocess.run([sys.executable, "-c", probe], check=True, timeout=20)
        subprocess.run(waiting_command(port), check=True, timeout=60)
    finally:
        web.stop()


def health_command():
    """The code of the compose file's health check."""
    return re.search(r'\[CMD, python, -c, "(.+)"\]', COMPOSE)[1]


def waiting_command(port):
    """What `systemctl restart` of a web process waits for."""
    words = unit_command("overview-web@.service", "1", "ExecStartPost")
    return [word.replace(f":{PORT}/", f":{port}/") for word in words]


def test_systemd_takes_the_units(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed.")
    for path in UNITS.iterdir():
        # The virtual environment of this checkout stands for the one under /srv.
        text = path.read_text(encoding="utf-8")
        venv = f"{sys.prefix}/bin/"
        (tmp_path / path.name).write_text(text.replace("/srv/overview/.venv/bin/", venv))
    names = [name.replace("@.", "@1.") for name in sorted(path.name for path in UNITS.iterdir())]
    command = ["systemd-analyze", "verify", "--man=no", *(str(tmp_path / name) for name in names)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    said = [line for line in result.stderr.splitlines() if line.startswith("overview")]
    assert (result.returncode, said) == (0, [])


def test_every_instruction_of_a_unit_names_a_unit():
    known = {path.name for path in UNITS.iterdir()}
    text = (UNITS / "overview.target").read_text(encoding="utf-8")
    named = {f"{kind}@.service" for kind in re.findall(r"(overview-\w+)@\d", text)}
    named |= {f"{kind}.service" for kind in re.findall(r"(overview-beat)\b", text)}
    assert known == {"overview.target", *named}
    for name in named:
        assert unit(name)["PartOf"] == "overview.target"
