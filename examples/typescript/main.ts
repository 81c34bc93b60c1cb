// Serves server.ts over Streamable HTTP, in both protocol eras: node --import tsx main.ts --port 8903
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { parseArgs } from "node:util";

import {
  localhostHostValidation,
  localhostOriginValidation,
  toNodeHandler,
} from "@modelcontextprotocol/node";
import { createMcpHandler } from "@modelcontextprotocol/server";

import { createServer } from "./server.ts";

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    "until-stdin-closes": { type: "boolean", default: false },
  },
});

const countDrafts = async () => 3;
const handle = toNodeHandler(createMcpHandler(() => createServer(countDrafts)));
const isLocalHost = localhostHostValidation();
const isLocalOrigin = localhostOriginValidation();

const http = createHttpServer((request, response) => {
  // Each guard has answered the request when it says no.
  if (!isLocalHost(request, response) || !isLocalOrigin(request, response)) return;
  if (new URL(request.url ?? "/", "http://localhost").pathname === "/mcp") {
    void handle(request, response);
  } else {
    response.writeHead(404).end();
  }
});

http.listen(Number(values.port), "127.0.0.1", () => {
  const { port } = http.address() as AddressInfo;
  console.log(`listening on http://127.0.0.1:${port}/mcp`);
});

const end = () => process.exit(0);
process.on("SIGTERM", end).on("SIGINT", end);
if (values["until-stdin-closes"]) {
  process.stdin.on("end", end).resume(); // It ends when the starting process dies.
}
