// Access tokens of a real issuer: oidc-provider on loopback, the server beside it, and a client that knows nothing but the
// server's address. It finds the issuer as the specification says: 401, metadata of the resource, metadata of the issuer.
//
// usage: node issuer.mjs NODE_HOME BINARY DIRECTORY
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import assert from "node:assert/strict";

const [home, binary, directory] = process.argv.slice(2);
const require = createRequire(join(home, "package.json"));
const { default: Provider } = await import(pathToFileURL(require.resolve("oidc-provider")));

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

const issuer = `http://127.0.0.1:${await freePort()}`;
const address = `http://127.0.0.1:${await freePort()}`;
const provider = new Provider(issuer, {
  clients: [{
    client_id: "agent", client_secret: "the-secret-of-this-test", grant_types: ["client_credentials"],
    redirect_uris: [], response_types: [],
  }],
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: () => ({ scope: "files:read other", accessTokenFormat: "jwt", accessTokenTTL: 600 }),
    },
  },
});
const listening = provider.listen(Number(new URL(issuer).port), "127.0.0.1");
await once(listening, "listening");

const config = join(directory, "oauth.yaml");
writeFileSync(config, `
host: 127.0.0.1
port: ${new URL(address).port}
roots: [{name: workspace, path: ${JSON.stringify(directory)}, allowed_tools: ["*"], history: off}]
auth:
  oauth:
    issuer: ${issuer}
    public_url: ${address}
    jwks_uri: ${issuer}/jwks
    scopes: {"files:read": readers}
`);
const server = spawn(binary, ["--config", config], { stdio: ["ignore", "ignore", "pipe"] });
let log = "";
server.stderr.on("data", (text) => (log += text));

async function call(token) {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  if (token) headers.authorization = `Bearer ${token}`;
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "list_roots", arguments: {} } });
  return fetch(`${address}/mcp`, { method: "POST", headers, body });
}

async function tokenFor(endpoint, resource, scope) {
  const body = new URLSearchParams({ grant_type: "client_credentials", resource, scope });
  const authorization = `Basic ${Buffer.from("agent:the-secret-of-this-test").toString("base64")}`;
  const reply = await fetch(endpoint, { method: "POST", headers: { authorization }, body });
  assert.equal(reply.status, 200, await reply.clone().text());
  return (await reply.json()).access_token;
}

try {
  for (let tries = 0; tries < 100 && !log.includes("server started"); tries++) {
    await new Promise((done) => setTimeout(done, 50));
  }
  const refused = await call();
  assert.equal(refused.status, 401);
  const challenge = refused.headers.get("www-authenticate");
  const resource = await (await fetch(/resource_metadata="([^"]+)"/.exec(challenge)[1])).json();
  assert.equal(resource.resource, `${address}/mcp`);
  const found = await (await fetch(`${resource.authorization_servers[0]}/.well-known/openid-configuration`)).json();
  const scope = /scope="([^"]+)"/.exec(challenge)[1];
  const token = await tokenFor(found.token_endpoint, resource.resource, scope);
  const header = JSON.parse(Buffer.from(token.split(".")[0], "base64url"));
  assert.equal(header.alg, "RS256");
  const answered = await call(token);
  assert.equal(answered.status, 200, await answered.clone().text());
  assert.match(await answered.text(), /workspace/);
  assert.equal((await call(await tokenFor(found.token_endpoint, "https://elsewhere.example", scope))).status, 401);
  assert.equal((await call(await tokenFor(found.token_endpoint, resource.resource, "other"))).status, 403);
  const [head, claims, signature] = token.split(".");
  const other = (signature[9] === "A" ? "B" : "A");
  assert.equal((await call(`${head}.${claims}.${signature.slice(0, 9)}${other}${signature.slice(10)}`)).status, 401);
  assert.ok(!log.includes(signature), "a token is in the log");
  console.log("ok");
} catch (error) {
  console.error(log);
  throw error;
} finally {
  server.kill();
  listening.close();
  listening.closeAllConnections();
}
