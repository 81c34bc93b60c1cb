"""A real authorization server and an MCP server that it protects: the SDK's own, on one port.

    with authorization_server() as server:
        server.answers["/token"] = answer(503)
        ... server.url ...
        assert len(server.asked("/token", grant_type="refresh_token")) == 1

Its person agrees at once to whatever is asked. The attributes of `AuthorizationServer` are
switches; a test may turn them at any time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

SERVER_METADATA = "/.well-known/oauth-authorization-server"
RESOURCE_METADATA = "/.well-known/oauth-protected-resource/mcp"


def answer(status: int, body: object = None, **headers: str) -> Response:
    """What a switch makes an address answer; `_` in a header's name stands for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return JSONResponse(body, status, named)


@dataclass
class Asked:
    """A request as it came. form: of the body, or else of the query."""

    verb: str
    path: str
    form: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass
class AuthorizationServer:
    """The switches, what was asked, and the provider behind the SDK's routes."""

    base: str
    access_seconds: int = 3600
    gives_refresh_tokens: bool = True
    rotates: bool = True
    names_itself: bool = False
    wrong_issuer: str = ""
    declines: dict[str, str] = field(default_factory=dict)
    """The error of the next authorization responses, e.g. {"error": "access_denied"}."""
    answers: dict[str, Response] = field(default_factory=dict)
    """By path, or "GET /path": answered instead of what is there."""
    changes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By path: members of its JSON that are other ones, or gone (None)."""
    refused_tokens: set[str] = field(default_factory=set)
    refuses_all: bool = False
    holds_refresh: threading.Event | None = None
    """The answer to a refresh waits for it, after the tokens have been replaced."""
    requests: list[Asked] = field(default_factory=list)
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    access_tokens: dict[str, AccessToken] = field(default_factory=dict)
    refresh_tokens: dict[str, RefreshToken] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The address of the MCP server."""
        return f"{self.base}/mcp"

    def asked(self, path: str, **form: str) -> list[Asked]:
        """The requests to a path with these members in their form."""
        return [
            each
            for each in self.requests
            if each.path == path and form.items() <= each.form.items()
        ]

    def add_client(self, client_id: str, redirect_uri: str, secret: str | None = None) -> None:
        """Register a client by hand, as an operator of the server would."""
        self.clients[client_id] = OAuthClientInformationFull(
            client_id=client_id,
            client_secret=secret,
            redirect_uris=[redirect_uri],  # type: ignore[list-item]
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
            scope="read write offline_access",
        )

    # What the SDK's routes call.

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client: OAuthClientInformationFull) -> None:
        client.scope = client.scope or "read write offline_access"
        self.clients[client.client_id] = client

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        issuer = self.wrong_issuer or (self.base if self.names_itself else None)
        back = str(params.redirect_uri)
        if self.declines:
            return construct_redirect_uri(back, state=params.state, iss=issuer, **self.declines)
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(back, code=code.code, state=params.state, iss=issuer)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[code.code]
        return self._issue(client.client_id, code.scopes, code.resource)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, token: str
    ) -> RefreshToken | None:
        return self.refresh_tokens.get(token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if self.rotates:
            del self.refresh_tokens[token.token]
        return self._issue(client.client_id, scopes, token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        is_refused = self.refuses_all or token in self.refused_tokens
        return None if is_refused else self.access_tokens.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        raise NotImplementedError

    def _issue(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        about: dict[str, Any] = {"client_id": client_id, "scopes": scopes, "resource": resource}
        access = f"access-{secrets.token_urlsafe(24)}"
        expires_at = int(time.time()) + self.access_seconds
        self.access_tokens[access] = AccessToken(token=access, expires_at=expires_at, **about)
        refresh = None
        if self.gives_refresh_tokens:
            refresh = f"refresh-{secrets.token_urlsafe(24)}"
            self.refresh_tokens[refresh] = RefreshToken(token=refresh, **about)
        return OAuthToken(
            access_token=access,
            expires_in=self.access_seconds,
            refresh_token=refresh,
            scope=" ".join(scopes),
        )

    # What stands before them.

    async def front(
        self,
        app: Callable[[Scope, Receive, Send], Awaitable[None]],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Note each request, and turn the switches that say what an address answers."""
        if scope["type"] != "http":
            return await app(scope, receive, send)
        body = await _body_of(receive)
        asked = _asked(scope, body)
        self.requests.append(asked)
        path = asked.path
        switched = self.answers.get(path) or self.answers.get(f"{asked.verb} {path}")
        if switched is not None:
            return await switched(scope, receive, send)

        async def again() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        if path in self.changes:
            send = _changed(send, self.changes[path])
        if asked.form.get("grant_type") == "refresh_token" and self.holds_refresh is not None:
            send = _held(send, self.holds_refresh)
        await app(scope, again if path != "/mcp" else _once(body, receive), send)
        return None


async def _body_of(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if not message.get("more_body"):
            return body


def _once(body: bytes, receive: Receive) -> Receive:
    """The body again, then whatever comes: a stream has to hear that its client is gone."""
    is_read = False

    async def message() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return message


def _asked(scope: Scope, body: bytes) -> Asked:
    headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
    is_form = headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
    form = body.decode() if is_form else scope["query_string"].decode()
    return Asked(scope["method"], scope["path"], dict(parse_qsl(form)), headers, body)


def _changed(send: Send, changes: dict[str, Any]) -> Send:
    """Change members of a JSON answer."""
    start: Message = {}

    async def changed(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start":
            start = message
            return
        value = {**json.loads(message["body"]), **changes}
        body = json.dumps({key: each for key, each in value.items() if each is not None}).encode()
        kept = [pair for pair in start["headers"] if pair[0] != b"content-length"]
        headers = [*kept, (b"content-length", str(len(body)).encode())]
        await send({**start, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return changed


def _held(send: Send, until: threading.Event) -> Send:
    async def held(message: Message) -> None:
        if message["type"] == "http.response.start":
            await asyncio.get_running_loop().run_in_executor(None, until.wait, 20)
        await send(message)

    return held


def _mcp_server(server: AuthorizationServer) -> MCPServer:
    mcp = MCPServer(
        "protected",
        version="1.0.0",
        auth_server_provider=server,  # type: ignore[arg-type]
        auth=AuthSettings(
            # Not as URL objects: those get a slash that nobody wrote.
            issuer_url=server.base,  # type: ignore[arg-type]
            resource_server_url=server.url,  # type: ignore[arg-type]
            client_registration_options=ClientRegistrationOptions(enabled=True),
            required_scopes=["read"],
            validate_token_resource=True,
        ),
    )

    @mcp.resource("acme://drafts", name="drafts", mime_type="application/json")
    def drafts() -> dict[str, int]:
        return {"count": 3}

    @mcp.tool()
    def send_draft() -> str:
        return "sent"

    return mcp


@contextlib.contextmanager
def authorization_server(
    tls: ssl.SSLContext | None = None, **switches: Any
) -> Iterator[AuthorizationServer]:
    """Serve until the block ends, on a loop in a thread of its own."""
    listener = socket.create_server(("127.0.0.1", 0))
    scheme = "https" if tls else "http"
    server = AuthorizationServer(f"{scheme}://127.0.0.1:{listener.getsockname()[1]}", **switches)
    app = _mcp_server(server).streamable_http_app(json_response=True, stateless_http=True)

    async def front(scope: Scope, receive: Receive, send: Send) -> None:
        await server.front(app, scope, receive, send)

    config = uvicorn.Config(
        front, log_level="error", access_log=False, lifespan="on", timeout_graceful_shutdown=1
    )
    config.load()
    config.ssl = tls
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        running.should_exit = True
        if server.holds_refresh is not None:
            server.holds_refresh.set()
        thread.join(10)
        listener.close()


def sent_back(departure_url: str, ca_bundle: str | None = None) -> str:
    """Do what a browser does at the authorization server: the path and query it returns with.

    ca_bundle: the authority that this browser trusts.
    """
    trusted = ssl.create_default_context(cadata=ca_bundle)
    response = httpx2.get(departure_url, follow_redirects=False, trust_env=False, verify=trusted)
    assert response.status_code == 302, response.text
    back = urlsplit(response.headers["location"])
    return f"{back.path}?{back.query}"


def with_query(path: str, **changes: str | None) -> str:
    """A path with other members in its query, or without them (None)."""
    parts = urlsplit(path)
    query = {**dict(parse_qsl(parts.query)), **changes}
    kept = {name: value for name, value in query.items() if value is not None}
    return f"{parts.path}?{urlencode(kept)}"
