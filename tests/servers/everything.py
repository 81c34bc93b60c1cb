"""What the conformance suite expects to find on a server, as far as a host hands it on.

Tools, resources and a template by the suite's names. Its prompts, and its tools that ask the
client something, are left out: neither reaches an outside client through the host.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.server import Server
from mcp.shared.exceptions import MCPError

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8"
    "z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
TEXT = types.TextContent(type="text", text="This is a simple text response for testing.")
IMAGE = types.ImageContent(type="image", data=PIXEL, mime_type="image/png")
AUDIO = types.AudioContent(type="audio", data=SILENCE, mime_type="audio/wav")
NOTHING = {"type": "object"}
SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

Content = list[types.ContentBlock]
Tool = Callable[[Any], Awaitable[Content]]


def embedded(uri: str, text: str, mime_type: str = "text/plain") -> types.EmbeddedResource:
    contents = types.TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return types.EmbeddedResource(type="resource", resource=contents)


def always(*content: types.ContentBlock) -> Tool:
    async def tool(ctx: Any) -> Content:
        return list(content)

    return tool


async def progress(ctx: Any) -> Content:
    for percent in (0, 50, 100):
        await ctx.session.report_progress(percent, 100)
    return [TEXT]


TOOLS: dict[str, Tool] = {
    "test_simple_text": always(TEXT),
    "test_image_content": always(IMAGE),
    "test_audio_content": always(AUDIO),
    "test_embedded_resource": always(embedded("test://embedded-resource", "Embedded.")),
    "test_multiple_content_types": always(
        TEXT, IMAGE, embedded("test://mixed-content-resource", '{"test": 1}', "application/json")
    ),
    "test_tool_with_progress": progress,
    # The suite looks whether anything but the answer comes with them.
    "test_logging_tool": always(TEXT),
    "test_streaming_elicitation": always(TEXT),
}
FAILING, SCHEMED = "test_error_handling", "json_schema_2020_12_tool"
RESOURCES: dict[str, types.TextResourceContents | types.BlobResourceContents] = {
    "test://static-text": types.TextResourceContents(
        uri="test://static-text", mime_type="text/plain", text="The static text resource."
    ),
    "test://static-binary": types.BlobResourceContents(
        uri="test://static-binary", mime_type="image/png", blob=PIXEL
    ),
}
TEMPLATE = "test://template/{id}/data"


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    schemas = dict.fromkeys([*TOOLS, FAILING], NOTHING) | {SCHEMED: SCHEMA_2020_12}
    return types.ListToolsResult(
        tools=[
            types.Tool(name=name, description=name, input_schema=schema)
            for name, schema in schemas.items()
        ]
    )


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    if params.name == FAILING:
        words = types.TextContent(type="text", text="This tool fails on purpose.")
        return types.CallToolResult(content=[words], is_error=True)
    tool = TOOLS.get(params.name, always(TEXT))
    return types.CallToolResult(content=await tool(ctx))


async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    return types.ListResourcesResult(
        resources=[
            types.Resource(uri=uri, name=uri, mime_type=each.mime_type)
            for uri, each in RESOURCES.items()
        ]
    )


async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(uri_template=TEMPLATE, name="template")
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read(ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    before, after = TEMPLATE.split("{id}")
    found = RESOURCES.get(params.uri)
    if found is None and params.uri.startswith(before) and params.uri.endswith(after):
        number = params.uri.removeprefix(before).removesuffix(after)
        text = json.dumps({"id": number, "templateTest": True, "data": f"Data for ID: {number}"})
        found = types.TextResourceContents(uri=params.uri, mime_type="application/json", text=text)
    if found is None:
        raise MCPError(types.INVALID_PARAMS, "There is no such resource.")
    return types.ReadResourceResult(contents=[found])


def build_server() -> Server[Any]:
    return Server(
        "everything",
        version="1.0.0",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read,
    )
