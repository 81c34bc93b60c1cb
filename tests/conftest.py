"""The cast of all tests: Alice is an admin of Acme, Bob a member, Carol belongs elsewhere."""

from __future__ import annotations

import ipaddress
import os

import pytest
from django.db import connection
from django.test import Client

# Playwright's sync API runs an event loop in the main thread, where Django refuses the ORM.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")


LOOPBACK = [ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128")]


def pytest_collection_modifyitems(items):
    """Chromium's tests last: Playwright leaves a loop running in the main thread, where no other
    test could then run one."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker):
    """Ends what a thread of the last test may still hold, so that the database can be dropped."""
    yield
    with django_db_blocker.unblock():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )


@pytest.fixture(autouse=True)
def _plain_settings(settings):
    """Static files without a manifest; connectors may reach this machine, as in the demo."""
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    settings.CONNECTOR_ALLOWED_NETWORKS = LOOPBACK
    # Tests change what a page shows without telling its workspace.
    settings.PANEL_SHARED_SECONDS = 0
    # The real one is slow on purpose, and each test makes people.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def acme(db):
    from workspaces.models import Workspace

    return Workspace.objects.create(slug="acme", name="Acme")


@pytest.fixture
def other(db):
    from workspaces.models import Workspace

    return Workspace.objects.create(slug="other", name="Other")


def _member(workspace, name, role):
    from workspaces.models import Membership, User

    user = User.objects.create_user(f"{name.lower()}@example.com", f"{name}-secret-1", name=name)
    Membership.objects.create(workspace=workspace, user=user, role=role)
    return user


@pytest.fixture
def alice(acme):
    return _member(acme, "Alice", "admin")


@pytest.fixture
def bob(acme):
    return _member(acme, "Bob", "member")


@pytest.fixture
def carol(other):
    return _member(other, "Carol", "admin")


def _signed_in(user):
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def alice_client(alice):
    return _signed_in(alice)


@pytest.fixture
def bob_client(bob):
    return _signed_in(bob)


@pytest.fixture
def carol_client(carol):
    return _signed_in(carol)
