"""Signing in, and the pages about a workspace itself."""

from __future__ import annotations

from django.urls import path, register_converter
from django.urls.converters import IntConverter

from workspaces.views import account, members, settings, signing_in, tokens


class NumberConverter(IntConverter):
    """A primary key; longer ones make SQLite overflow instead of finding nothing."""

    regex = "[0-9]{1,18}"


register_converter(NumberConverter, "number")

app_name = "workspaces"

urlpatterns = [
    path("sign-in/", signing_in.sign_in, name="sign_in"),
    path("sign-in/link/<str:uid>/<str:token>/", signing_in.sign_in_link, name="sign_in_link"),
    path("sign-out/", signing_in.sign_out, name="sign_out"),
    path("account/", account.account, name="account"),
    path("workspaces/", settings.workspaces, name="list"),
    path("w/<slug:slug>/members/", members.members, name="members"),
    path("w/<slug:slug>/members/<number:user_id>/", members.member, name="member"),
    path("w/<slug:slug>/members/<number:user_id>/remove/", members.remove, name="remove_member"),
    path("w/<slug:slug>/settings/", settings.general, name="settings"),
    path("w/<slug:slug>/settings/appearance/", settings.appearance, name="appearance"),
    path("w/<slug:slug>/tokens/", tokens.tokens, name="tokens"),
    path("w/<slug:slug>/tokens/<number:token_id>/revoke/", tokens.revoke, name="revoke_token"),
    path("w/<slug:slug>/audit/", settings.audit, name="audit"),
]
