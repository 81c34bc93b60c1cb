"""Against servers that are built on the MCP SDK, as most servers are, and over TLS."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import mcp_types as types
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from mcp.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated

from connectors.protocol.identifiers import FACETS
from connectors.sessions import FaultKind
from connectors.sessions.endpoint import ssl_context_for
from tests.connectors.session_host import host_of, target_of
from tests.servers.raw import MODERN, raw_server
from tests.servers.sdk import sdk_server


def facet_server(**handlers):
    async def list_resources(ctx, params):
        marker = {FACETS: {"level": "info"}}
        return types.ListResourcesResult(
            resources=[types.Resource(uri="test://one", name="one", title="Ones", _meta=marker)]
        )

    async def read_resource(ctx, params):
        if params.uri != "test://one":
            raise MCPError(types.INVALID_PARAMS, "no such resource", {"uri": params.uri})
        content = types.TextResourceContents(uri=params.uri, text='{"count": 3}')
        return types.ReadResourceResult(contents=[content])

    async def call_tool(ctx, params):
        await ctx.session.report_progress(1, 2, "half")
        return types.CallToolResult(content=[types.TextContent(text=str(params.arguments))])

    server = Server(
        "sdk",
        version="2",
        on_list_resources=list_resources,
        on_read_resource=read_resource,
        on_call_tool=call_tool,
        **handlers,
    )
    server.extensions[FACETS] = {}
    return server


def test_a_server_on_the_sdk_is_discovered_listed_read_and_called():
    told = []

    async def on_progress(*progress):
        told.append(progress)

    with sdk_server(facet_server()) as url, host_of() as host:
        target = target_of(url)
        connected = host.connect(target)
        assert (connected.revision, connected.server_name) == (MODERN, "sdk")
        assert connected.capabilities["extensions"] == {FACETS: {}}
        assert host.entries(target).entries[0]["_meta"] == {FACETS: {"level": "info"}}
        assert host.read(target)["contents"][0]["text"] == '{"count": 3}'
        fault = host.read(target, "test://two")
        assert (fault.kind, fault.code) == (FaultKind.REMOTE, types.INVALID_PARAMS)
        assert (fault.message, fault.data) == ("no such resource", {"uri": "test://two"})
        result = host.call(target, arguments={"to": "ann"}, on_progress=on_progress)
        assert result["content"] == [{"type": "text", "text": "{'to': 'ann'}"}]
        assert host.ping(target) == connected
    assert told == [(1, 2, "half")]


def test_a_change_that_a_server_on_the_sdk_publishes_is_told():
    bus = InMemorySubscriptionBus()
    server = facet_server(on_subscriptions_listen=ListenHandler(bus))
    with sdk_server(server) as url, host_of() as host:
        target = target_of(url)

        async def first_change():
            changes: asyncio.Queue[str | None] = asyncio.Queue()
            listen = host.sessions.listen(target, ["test://one"], changes.put_nowait)
            listening = asyncio.create_task(listen)
            publishing = asyncio.create_task(publish())
            try:
                return await changes.get()
            finally:
                for task in (listening, publishing):
                    task.cancel()
                await asyncio.gather(listening, publishing, return_exceptions=True)

        async def publish():
            while True:
                await bus.publish(ResourceUpdated("test://one"))
                await asyncio.sleep(0.02)

        assert host.run(first_change(), 5) == "test://one"


def self_signed(tmp_path):
    """A certificate for 127.0.0.1 that is its own root, and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture
def certificate(tmp_path):
    ssl_context_for.cache_clear()
    yield self_signed(tmp_path)
    ssl_context_for.cache_clear()


def tls_of(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_a_server_with_a_certificate_that_is_trusted_is_read(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with raw_server(tls=tls_of(certificate)) as server, host_of() as host:
        server.on("resources/read", {"contents": []})
        assert host.read(target_of(server.url))["contents"] == []


def test_a_certificate_that_is_not_trusted_is_told_in_words(certificate):
    with raw_server(tls=tls_of(certificate)) as server, host_of() as host:
        fault = host.connect(target_of(server.url))
        assert fault.kind == FaultKind.UNREACHABLE
        assert fault.message.startswith("The server's certificate is not valid: self")
