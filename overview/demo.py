"""The demo: a workspace with an admin, a member and four real example servers."""

from __future__ import annotations

from pathlib import Path

from django.db import transaction

from connectors.actions import add_connector, configure_connector, connect_connector
from connectors.models import Connector
from examples.catalog import EXAMPLES, Example, ExampleServers
from workspaces.actions import create_workspace, set_membership
from workspaces.models import Role, User, Workspace
from workspaces.sign_in_links import sign_in_path

SLUG = "demo"
ADMIN = "alice@demo.example"
MEMBER = "bob@demo.example"


class Demo:
    """Lives as long as the host: starts the servers, connects what is not connected, stops them."""

    def __init__(self, directory: Path) -> None:
        self._servers = ExampleServers(directory / "examples")
        self.notes: list[str] = []

    def start(self) -> None:
        """Start the servers; on the first start, make the workspace and connect them to it.

        A second start keeps what people did: a connector that was removed stays away, and one that
        was disconnected stays so. Only an address that has moved is followed.
        """
        started = self._servers.start()
        self.notes = started.skipped
        workspace = Workspace.objects.filter(slug=SLUG).first()
        is_first = workspace is None
        workspace = workspace or _make_workspace()
        for example in EXAMPLES:
            url = started.urls.get(example.slug)
            if url is None:
                continue
            connector = Connector.objects.filter(workspace=workspace, slug=example.slug).first()
            if connector is not None and connector.url != url:
                connector.url = url
                configure_connector(connector, [], [], by=None)
            elif connector is None and (is_first or example.needs_node):
                _connect(workspace, example, url)

    def stop(self) -> None:
        """Stop the servers, within 2 s."""
        self._servers.stop()

    def sign_in_path(self) -> str:
        """The single-use link of the demo's admin, to its overview."""
        return sign_in_path(User.objects.get(email=ADMIN))


@transaction.atomic
def _make_workspace() -> Workspace:
    admin = _person(ADMIN, "Alice")
    workspace = create_workspace(SLUG, "Demo", admin=admin)
    set_membership(workspace, _person(MEMBER, "Bob"), Role.MEMBER, by=admin)
    return workspace


def _person(email: str, name: str) -> User:
    found = User.objects.filter(email=email).first()
    return found or User.objects.create_user(email, None, name=name)


@transaction.atomic
def _connect(workspace: Workspace, example: Example, url: str) -> None:
    connector = Connector(
        workspace=workspace,
        slug=example.slug,
        name=example.name,
        url=url,
        placements=[dict(placement) for placement in example.placements],
    )
    admin = User.objects.filter(email=ADMIN).first()
    add_connector(connector, [], by=admin)
    connect_connector(connector, by=admin)
