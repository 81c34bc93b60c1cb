"""What a diagnosis consists of. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

MAX_NAMED = 5
"""Failed steps that a summary names."""


class Outcome(StrEnum):
    """How a step went. note: it works, and something is worth knowing."""

    OK = "ok"
    NOTE = "note"
    FAILED = "failed"
    SKIPPED = "skipped"


class Fixer(StrEnum):
    """Who can do something about a finding, in words for people."""

    ADMIN = "a workspace admin"
    OWNER = "whoever owns this connector"
    OPERATOR = "whoever runs this host"
    AUTHOR = "whoever makes or runs the server"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a step found: what it means, and what to do. is_failure: else only worth knowing."""

    words: str
    fixer: Fixer | None = Fixer.AUTHOR
    is_failure: bool = True


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the path. seconds: how long it took; None for one that took no time."""

    name: str
    words: str
    outcome: Outcome
    seconds: float | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def took(self) -> str:
        """The time in words; empty for none."""
        if self.seconds is None:
            return ""
        milliseconds = round(self.seconds * 1000)
        return f"{milliseconds} ms" if milliseconds < 1000 else f"{self.seconds:.1f} s"


class Verdict(StrEnum):
    """The whole of a diagnosis."""

    OK = "ok"
    BROKEN = "broken"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All steps, in order. is_reached: a connection stood, so that its server could be asked."""

    subject: str
    steps: tuple[Step, ...]
    is_reached: bool

    @property
    def verdict(self) -> Verdict:
        if not self.is_reached:
            return Verdict.UNREACHABLE
        is_broken = any(step.outcome is Outcome.FAILED for step in self.steps)
        return Verdict.BROKEN if is_broken else Verdict.OK

    @property
    def summary(self) -> str:
        """The verdict in a sentence or two: where it fails, and who can fix it."""
        failed = [step for step in self.steps if step.outcome is Outcome.FAILED]
        names = ", ".join(step.name for step in failed[:MAX_NAMED])
        more = f" and {len(failed) - MAX_NAMED} more" if len(failed) > MAX_NAMED else ""
        match self.verdict:
            case Verdict.OK:
                return "Every step went well."
            case Verdict.BROKEN:
                steps = "1 step" if len(failed) == 1 else f"{len(failed)} steps"
                return f"The server answers, and {steps} failed: {names}{more}.{_who(failed)}"
            case Verdict.UNREACHABLE:
                where = f" at {names}" if names else ""
                return f"The way to the server ends{where}.{_who(failed)}"


def _who(failed: list[Step]) -> str:
    fixers = {
        finding.fixer: None
        for step in failed
        for finding in step.findings
        if finding.fixer and finding.is_failure
    }
    if not fixers:
        return ""
    words = " or ".join(fixers)
    return f" {words[0].upper()}{words[1:]} can fix it."


def for_its_owner(diagnosis: Diagnosis) -> Diagnosis:
    """The same of a personal connector: what elsewhere an admin can fix, its owner can."""

    def addressed(finding: Finding) -> Finding:
        is_theirs = finding.fixer is Fixer.ADMIN
        return replace(finding, fixer=Fixer.OWNER) if is_theirs else finding

    steps = (
        replace(step, findings=tuple(map(addressed, step.findings))) for step in diagnosis.steps
    )
    return replace(diagnosis, steps=tuple(steps))
