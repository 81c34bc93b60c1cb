"""The fault harness: `python -m tests.faults`, or `make faults`."""
