// One conversation with an MCP endpoint, held by a client of the npm SDK.
//
//   standard input: {"sdk": "1" | "2" | "2 auto", "url", "token", "steps": [["listTools", {}], ...]}
//   standard output: {"revision", "results": [...]}, or {"refusal": {...}} when the client could not
//   connect. A step that failed has {"refusal": {"code", "message", "data"}} as its result.

import { text } from "node:stream/consumers";

const packages = {
  1: async () => ({
    ...(await import("@modelcontextprotocol/sdk/client/index.js")),
    ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
  }),
  2: () => import("@modelcontextprotocol/client"),
};

// 1.x puts the HTTP status into `code`; 2.x has words there and the status beside them.
const refusal = ({ status, code, message, data }) => ({
  refusal: { code: status ?? code, message, data },
});

const { sdk, url, token, steps } = JSON.parse(await text(process.stdin));
const { Client, StreamableHTTPClientTransport } = await packages[sdk[0]]();
const options = sdk === "2 auto" ? { versionNegotiation: { mode: "auto" } } : {};
const client = new Client({ name: "peer", version: "1.0.0" }, options);
const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${token}` } },
});

async function converse() {
  await client.connect(transport);
  const results = [];
  for (const [method, params] of steps) {
    results.push(await client[method](params).catch(refusal));
  }
  const revision = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion;
  await client.close();
  return { revision, results };
}

console.log(JSON.stringify(await converse().catch(refusal)));
