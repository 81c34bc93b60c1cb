"""Passwords in these tests are many, so they are hashed in no time."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _quick_passwords(settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
