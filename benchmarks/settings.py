"""The product's settings, with an empty page beside its own to compare with."""

from overview.settings import *  # noqa: F403

ROOT_URLCONF = "benchmarks.urls"
