"""The page that adds a connector, by hand or out of a registry's server.json."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from connectors.actions import add_connector, connect_connector
from connectors.forms import ImportForm
from connectors.models import Connector
from connectors.queries import free_slug
from connectors.views.sheet import Sheet, declared_in, described, initial_of
from workspaces.access import Member, require_admin


@require_http_methods(["GET", "HEAD", "POST"])
def add(request: HttpRequest, slug: str) -> HttpResponse:
    member = require_admin(request, slug)
    if request.method != "POST":
        return _page(request, Sheet(member.workspace), ImportForm())
    if "import" in request.POST:
        return _imported(request, member)
    declared = declared_in(described(request.POST.get("server_json", "")))
    sheet = Sheet(member.workspace, request.POST, declared=declared)
    if sheet.is_valid() and (connector := _add(sheet, member)):
        said = "is added."
        if "connect" in request.POST:
            connect_connector(connector, by=member.user)
            said = "is added and connecting."
        messages.success(request, f"{connector.name} {said}")
        return redirect("connectors:detail", slug, connector.slug)
    return _page(request, sheet, ImportForm())


def _add(sheet: Sheet, member: Member) -> Connector | None:
    connector = sheet.filled_in()
    connector.slug = free_slug(member.workspace, connector.name)
    try:
        return add_connector(connector, sheet.new_secrets(), by=member.user)
    except ValidationError as error:
        # For example a second click that came through while the first one was being answered.
        sheet.main.add_error(None, error.messages)
        return None


def _imported(request: HttpRequest, member: Member) -> HttpResponse:
    form = ImportForm(request.POST, request.FILES)
    if not form.is_valid():
        return _page(request, Sheet(member.workspace), form)
    text = form.cleaned_data["text"]
    sheet = Sheet(
        member.workspace,
        declared=declared_in(form.description),
        initial=initial_of(form.description, text),
    )
    return _page(request, sheet, ImportForm(), notes=form.description.notes, is_imported=True)


def _page(
    request: HttpRequest,
    sheet: Sheet,
    form: ImportForm,
    *,
    notes: tuple[str, ...] = (),
    is_imported: bool = False,
) -> HttpResponse:
    context = {"sheet": sheet, "import": form, "notes": notes, "is_imported": is_imported}
    return render(request, "connectors/add.html", context)
