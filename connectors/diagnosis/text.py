"""A diagnosis as text to copy, and as JSON for scripts. Pure."""

from __future__ import annotations

from typing import Any

from connectors.diagnosis.values import Diagnosis, Outcome, Step

_WORDS = {
    Outcome.OK: "ok",
    Outcome.NOTE: "note",
    Outcome.FAILED: "FAILED",
    Outcome.SKIPPED: "–",
}


def as_text(diagnosis: Diagnosis) -> str:
    """Every step on a line of its own, what it found below it."""
    steps = [line for step in diagnosis.steps for line in _lines(step)]
    return "\n".join([f"Diagnosis of {diagnosis.subject}", *steps, diagnosis.summary])


def _lines(step: Step) -> list[str]:
    took = f" ({step.took})" if step.took else ""
    lines = [f"{_WORDS[step.outcome]:7}{step.name}: {step.words}{took}"]
    for finding in step.findings:
        who = f" [{finding.fixer}]" if finding.fixer else ""
        lines.append(f"       {'!' if finding.is_failure else '-'} {finding.words}{who}")
    return lines


def as_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """For scripts; the names are public (docs/operations.md)."""
    return {
        "subject": diagnosis.subject,
        "verdict": diagnosis.verdict.value,
        "summary": diagnosis.summary,
        "steps": [
            {
                "name": step.name,
                "outcome": step.outcome.value,
                "words": step.words,
                "milliseconds": None if step.seconds is None else round(step.seconds * 1000),
                "findings": [
                    {
                        "words": each.words,
                        "fixer": each.fixer.value if each.fixer else None,
                        "is_failure": each.is_failure,
                    }
                    for each in step.findings
                ],
            }
            for step in diagnosis.steps
        ],
    }
