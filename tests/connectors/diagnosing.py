"""The diagnosis as the author of a server gets it, at the command line."""

from __future__ import annotations

import io

from django.core.management import call_command


def diagnose_server(*words):
    """What `diagnose-server` prints, and its exit status."""
    out = io.StringIO()
    try:
        call_command("diagnose-server", *words, stdout=out)
    except SystemExit as left:
        return out.getvalue(), left.code
    return out.getvalue(), 0
