import { Server } from "@modelcontextprotocol/server";

const FACETS = "ai.nimblebrain/facets";
const DRAFTS_URI = "acme://facets/drafts-awaiting-review";

export function createServer(countDrafts: () => Promise<number>): Server {
  const server = new Server(
    { name: "acme-outbound", version: "1.0.0" },
    { capabilities: { resources: {}, extensions: { [FACETS]: {} } } },
  );

  server.setRequestHandler("resources/list", async () => ({
    resources: [
      {
        uri: DRAFTS_URI,
        name: "drafts-awaiting-review",
        title: "Drafts awaiting review",
        mimeType: "application/json",
        _meta: { [FACETS]: { level: "warning" } },
      },
    ],
  }));

  server.setRequestHandler("resources/read", async (request) => {
    if (request.params.uri !== DRAFTS_URI) {
      throw new Error(`Unknown resource: ${request.params.uri}`);
    }
    // One aggregate query for the workspace this connection serves.
    const count = await countDrafts();
    return {
      contents: [{ uri: DRAFTS_URI, mimeType: "application/json", text: JSON.stringify({ count }) }],
    };
  });

  return server;
}
