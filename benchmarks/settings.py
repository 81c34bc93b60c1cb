"""The product's settings, with an empty page beside its own to compare with."""

from overview.settings import *  # noqa: F403

ROOT_URLCONF = "benchmarks.urls"
# What a fetch costs is measured, not what it costs the second time within a second.
PANEL_SHARED_SECONDS = 0
