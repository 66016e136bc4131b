// Takes docs/pictures/admin-live.png: the operator's page while four clients do ordinary work for half a minute.
//
// usage: docs/pictures/live.mjs NODE_HOME CHROMIUM BINARY      (NODE_HOME has playwright-core)
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const [home, chromium, binary] = process.argv.slice(2);
const browserType = createRequire(join(home, "package.json"))("playwright-core").chromium;
const SECONDS = 30;
const TOKEN = "operator-token-0123456789";
const CLIENTS = ["docs-writer", "reviewer", "build-bot", "refactorer"];
const work = mkdtempSync(join(tmpdir(), "live-"));
const token = (name) => `token-of-${name}-0123456789`;
const digest = (text) => createHash("sha256").update(text).digest("hex");
const pause = (time) => new Promise((done) => setTimeout(done, time));

mkdirSync(join(work, "app/src"), { recursive: true });
mkdirSync(join(work, "app/docs"));
for (let index = 0; index < 40; index += 1) {
  writeFileSync(join(work, `app/src/part_${index}.rs`), `// part ${index}\npub fn part_${index}() -> u32 {\n    ${index} // TODO: why?\n}\n`);
  writeFileSync(join(work, `app/docs/page_${index}.md`), `# Page ${index}\n\nSee part ${index}.\n`);
}
writeFileSync(join(work, "token"), `${TOKEN}\n`, { mode: 0o600 });
const clients = CLIENTS.map((name) => `  - {name: ${name}, tokens: ["sha256:${digest(token(name))}"], roots: {app: {rights: [${name === "reviewer" ? "read" : "read, create, change, remove"}]}}}`);
writeFileSync(join(work, "config.yaml"), `host: 127.0.0.1
port: 0
roots:
  - {name: app, path: app, allowed_tools: ["*"], history: {place: root}}
clients:
${clients.join("\n")}
admin: {listen: "127.0.0.1:0", token_file: token}
`);

const child = spawn(binary, ["--config", join(work, "config.yaml")], { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, XDG_STATE_HOME: work } });
let log = "";
child.stderr.on("data", (data) => { log += data; });

async function field(name) {
  for (let round = 0; round < 100; round += 1) {
    const line = log.split("\n").find((one) => one.includes(`"${name}":`));
    if (line) return JSON.parse(line)[name];
    await pause(100);
  }
  throw new Error(`the server did not start: ${log}`);
}

let id = 0;
const pick = (count) => Math.floor(Math.random() * count);
function some() { // a call such as agents make
  const source = `src/part_${pick(40)}.rs`;
  const calls = [
    ["read_file", { path: source }], ["read_file", { path: `docs/page_${pick(40)}.md` }], ["grep", { pattern: "TODO" }], ["glob", { pattern: "**/*.md" }],
    ["list_folder", { path: "src" }], ["edit_file", { path: source, edits: [{ old: "// TODO: why?", new: "// Counted from zero." }] }],
    ["write_file", { path: `docs/new_${pick(99)}.md`, content: "# New\n" }], ["stat_file", { path: source }],
  ];
  return calls[pick(calls.length)];
}

async function work_on(address, name, until) {
  while (Date.now() < until) {
    const [tool, args] = some();
    await fetch(`http://${address}/mcp`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream", authorization: `Bearer ${token(name)}`,
        "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": tool, "mcp-param-root": "app" },
      body: JSON.stringify({ jsonrpc: "2.0", id: id += 1, method: "tools/call", params: { name: tool, arguments: { root: "app", ...args }, _meta: {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": { name, version: "1" }, "io.modelcontextprotocol/clientCapabilities": {} } } }),
    }).then((reply) => reply.text());
    await pause(60 + pick(400));
  }
}

async function run() {
  const [address, admin] = [await field("address"), await field("admin")];
  const browser = await browserType.launch({ executablePath: chromium, args: ["--no-sandbox"] });
  const page = await browser.newPage({ viewport: { width: 1200, height: 720 } });
  await page.goto(`http://${admin}/`);
  await page.getByLabel(/A token of/).fill(TOKEN);
  await page.keyboard.press("Enter");
  await page.getByText(/^connected/).waitFor();
  const until = Date.now() + SECONDS * 1000;
  await Promise.all(CLIENTS.map((name) => work_on(address, name, until)));
  await page.screenshot({ path: fileURLToPath(new URL("admin-live.png", import.meta.url)) });
  await browser.close();
}

try {
  await run();
} finally {
  child.kill();
  rmSync(work, { recursive: true, force: true });
}
