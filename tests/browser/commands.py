"""Management commands for the tests, in one process that stays: starting Django for each would
take longer than most tests. Reads a JSON list of words a line, answers with a JSON string a line:
what the command printed.
"""

from __future__ import annotations

import io
import json
import sys

import django
from django.core.management import call_command
from django.core.management.base import CommandError


def answer(words: list[str]) -> str:
    """What the command printed. One may report and fail: a connector is added, and not ready."""
    printed = io.StringIO()
    try:
        call_command(*words, stdout=printed)
    except CommandError as error:
        return printed.getvalue() or f"Refused: {error}"
    return printed.getvalue()


def main() -> None:
    django.setup()
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
