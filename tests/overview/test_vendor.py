"""What is vendored is what was fetched, and the sprite holds what the pages draw."""

from __future__ import annotations

import hashlib
import re

from django.conf import settings

VENDOR = settings.BASE_DIR / "static" / "vendor"
TEMPLATES = settings.BASE_DIR / "templates"


def test_each_vendored_file_is_the_one_that_was_fetched():
    listed = {}
    for line in (VENDOR / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
        digest, listed_name = line.split("  ")
        listed[listed_name] = digest
    files = [path for path in VENDOR.rglob("*") if path.is_file() and path.name != "SHA256SUMS"]
    for path in [*files, TEMPLATES / "_sprite.html"]:
        name = str(path.relative_to(settings.BASE_DIR))
        assert listed.pop(name) == hashlib.sha256(path.read_bytes()).hexdigest(), name
    assert listed == {}


def test_each_vendored_package_says_its_version_and_licence():
    for package in (path for path in VENDOR.iterdir() if path.is_dir()):
        assert (package / "VERSION").read_text(encoding="utf-8").strip()
        assert (package / "LICENSE").read_text(encoding="utf-8").strip()


def test_the_sprite_holds_each_icon_that_a_template_draws():
    symbols = set(re.findall(r'id="i-([a-z-]+)"', (TEMPLATES / "_sprite.html").read_text("utf-8")))
    drawn = set()
    for path in TEMPLATES.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        drawn |= set(re.findall(r'_icon.html" with name="([a-z-]+)"', text))
        for names in re.findall(r'href="#i-(.*?)"/>', text):
            drawn |= set(re.findall(r"(?:^|%\})([a-z-]+)(?=\{%|$)", names))
    assert drawn <= symbols
