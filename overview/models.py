"""One row per connector and facet: what it is, its last count, and the lease of a read. And one per
connector whose server is listened to."""

from __future__ import annotations

import hashlib

from django.db import models

from connectors.fields import ExactJSONField
from connectors.models import Connector
from connectors.protocol.facets import Level


def digest_of(name: str) -> str:
    """The identity of a facet's name: any length and any character, lone surrogates included."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


class StoredFacet(models.Model):
    connector = models.ForeignKey(Connector, models.CASCADE, related_name="facets")
    name = ExactJSONField()
    name_digest = models.CharField(max_length=64)
    uri = ExactJSONField()
    title = models.TextField()
    level = models.CharField(max_length=8, choices=[(each.value, each.value) for each in Level])
    position = models.PositiveIntegerField()

    # Decimal text: a count has no upper bound (D-F14).
    count = models.TextField(null=True)  # noqa: DJ001  null: never read
    read_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True)
    # The server said that it changed, and no read has begun since.
    changed_at = models.DateTimeField(null=True)
    failure = models.TextField(blank=True)
    # The connector's epoch under which the count or the failure came.
    epoch = models.PositiveIntegerField(default=0)
    # A read under way. It expires by itself, so a killed process blocks nobody.
    lease_owner = models.CharField(max_length=32, blank=True)
    lease_until = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["connector", "name_digest"], name="facet_once"),
        )
        indexes = (models.Index(fields=["lease_owner"], name="facet_by_lease"),)

    def __str__(self) -> str:
        return f"{self.title} of {self.connector_id}"


class Subscription(models.Model):
    """Which process listens to a server for changed counts, and until when nobody else does.

    Without an owner: until when nobody tries, because the server ended it or offers none.
    """

    connector = models.OneToOneField(Connector, models.CASCADE, related_name="subscription")
    # The connector's, then: a changed connector is tried anew at once.
    generation = models.PositiveIntegerField()
    owner = models.CharField(max_length=32, blank=True)
    until = models.DateTimeField()

    def __str__(self) -> str:
        return f"subscription to {self.connector_id}"
