"""See `tests.faults.harness`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.faults import harness
from tests.faults.harness import Run


def main() -> None:
    parser = argparse.ArgumentParser(description=harness.__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--faults", type=int, default=40)
    parser.add_argument("--only", action="append", default=[], help="a fault, e.g. 'kill web1'")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        problems = Run(options.seed, options.faults, options.only).run(Path(name))
    for each in problems:
        print(f"BROKEN: {each}")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
