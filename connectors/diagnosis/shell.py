"""Starting a diagnosis from a thread: of a stored connector, or of an address alone."""

from __future__ import annotations

from django.conf import settings

from connectors.declared import from_json
from connectors.diagnosis.record import Terms
from connectors.diagnosis.values import (
    Diagnosis,
    Finding,
    Fixer,
    Outcome,
    Step,
    for_its_owner,
)
from connectors.diagnosis.walk import walk
from connectors.errors import SecretUnreadable
from connectors.inputs import host_of, origin_of
from connectors.models import Connector, Transport
from connectors.queries import required_of, target_to
from connectors.runtime import claims_of, is_allowed_address, limits, run
from connectors.sessions import Target

TOTAL_SECONDS = 30
SPARE_SECONDS = 5
"""For closing what was opened."""


def diagnose(connector: Connector) -> Diagnosis:
    """Walk the way to a connector's server, whatever its status. Nothing is stored."""
    made = _diagnose(connector)
    return for_its_owner(made) if connector.is_personal else made


def _diagnose(connector: Connector) -> Diagnosis:
    subject = f"{connector.name} ({connector.command or host_of(connector.url)})"
    try:
        # What was read here is for this walk, so that the words can be kept free of it.
        secrets = list(connector.secrets.all())
        target = target_to(connector, with_grant=True)
    except SecretUnreadable:
        words = "A stored secret cannot be decrypted: its key is not among SECRETS_KEYS."
        advice = Finding("Give the key back, or enter the secret again.", Fixer.OPERATOR)
        return _ended(subject, words, advice)
    present = {(each.kind, each.name) for each in secrets}
    if missing := [name for kind, name in required_of(connector) if (kind, name) not in present]:
        advice = Finding("Fill them in under Configure.", Fixer.ADMIN)
        return _ended(subject, f"Without a value: {', '.join(missing)}.", advice)
    if connector.transport == Transport.STDIO and not target.command:
        advice = Finding("Name it in STDIO_SERVERS.", Fixer.OPERATOR)
        return _ended(subject, f"There is no program “{connector.command}”.", advice)
    plain = {each.key for each in from_json(connector.required) if not each.is_secret}
    hidden = [each.value for each in secrets if (each.kind, each.name) not in plain]
    terms = Terms(
        limits=limits(),
        claims=claims_of,
        is_allowed=is_allowed_address,
        read_seconds=settings.FACET_READ_TIMEOUT_SECONDS,
        total_seconds=TOTAL_SECONDS,
    )
    return run(lambda _: walk(subject, target, terms, hidden), TOTAL_SECONDS + SPARE_SECONDS)


def diagnose_address(
    url: str, headers: tuple[tuple[str, str], ...], ca_bundle: str = ""
) -> Diagnosis:
    """Walk to a server that is no connector, in both eras.

    For its author, on the author's machine: every address is allowed, and no database is asked.
    """
    terms = Terms(
        limits=limits(),
        claims=claims_of,
        is_allowed=lambda _: True,
        read_seconds=settings.FACET_READ_TIMEOUT_SECONDS,
        total_seconds=TOTAL_SECONDS,
        has_connector=False,
        is_both_eras=True,
    )
    target = Target(connector_id=0, generation=1, url=url, headers=headers, ca_bundle=ca_bundle)
    return run(lambda _: walk(origin_of(url), target, terms), TOTAL_SECONDS + SPARE_SECONDS)


def _ended(subject: str, words: str, advice: Finding) -> Diagnosis:
    step = Step("Settings", words, Outcome.FAILED, findings=(advice,))
    return Diagnosis(subject, (step,), is_reached=False)
