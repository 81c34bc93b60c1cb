"""Single-use sign-in links, for the first start and for people who lost their password.

The signature covers the last sign-in, so that using a link ends it.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.urls import reverse
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_decode, urlsafe_base64_encode

from workspaces.models import User


class _Generator(PasswordResetTokenGenerator):
    key_salt = "workspaces.sign_in_links"

    def _make_hash_value(self, user: Any, timestamp: int) -> str:
        # Django's own drops the microseconds of the last sign-in, so that a link made and used
        # within a second of another sign-in would work twice.
        at = user.last_login.isoformat() if user.last_login else ""
        return f"{user.pk}{user.password}{at}{timestamp}{user.email}"

    def check_token(self, user: Any, token: str | None) -> bool:
        if not super().check_token(user, token):
            return False
        assert token is not None
        made_at = int(token.partition("-")[0], 36)
        age_seconds = self._num_seconds(self._now()) - made_at
        return bool(age_seconds <= settings.SIGN_IN_LINK_SECONDS)


_generator = _Generator()


def sign_in_path(user: User) -> str:
    """The path of a link that signs this person in once, within SIGN_IN_LINK_SECONDS."""
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    return reverse("workspaces:sign_in_link", args=[uid, _generator.make_token(user)])


def claim_link(uid: str, token: str) -> User | None:
    """As `user_of_link`, and the link is used up: of two requests at once, one gets the person."""
    user = user_of_link(uid, token)
    if user is None:
        return None
    unused = User.objects.filter(pk=user.pk, last_login=user.last_login)
    return user if unused.update(last_login=timezone.now()) == 1 else None


def user_of_link(uid: str, token: str) -> User | None:
    """The person whom a link signs in; None when it is used, old or not ours."""
    try:
        pk = int(urlsafe_base64_decode(uid).decode())
    except (ValueError, OverflowError):
        return None
    user = User.objects.filter(pk=pk, is_active=True).first()
    return user if user is not None and _generator.check_token(user, token) else None
