// The operator's page in a real browser: a person's first minutes with it, and what an attacker would put into names.
//
// usage: admin_page.mjs NODE_HOME CHROMIUM SERVER [PICTURES [SECONDS]]
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import assert from "node:assert/strict";

const [home, chromium, server, pictures, seconds] = process.argv.slice(2);
const { chromium: browserType } = createRequire(join(home, "package.json"))("playwright-core");

const TOKEN = "operator-token-0123456789";
const work = mkdtempSync(join(tmpdir(), "admin-page-"));
mkdirSync(join(work, "root"));
writeFileSync(join(work, "root", ".env"), "");
writeFileSync(join(work, "token"), `${TOKEN}\n`, { mode: 0o600 });
writeFileSync(join(work, "config.yaml"), `host: 127.0.0.1
port: 0
roots:
  - name: workspace
    path: root
    allowed_tools: ["*"]
    history: {place: root}
    quota: {max_bytes: 1000000}
admin:
  listen: 127.0.0.1:0
  token_file: token
`);

const child = spawn(server, ["--config", join(work, "config.yaml")], { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, XDG_STATE_HOME: work } });
let log = "";
child.stderr.on("data", (data) => { log += data; });
const ended = [];
const finish = async () => {
  for (const end of ended.reverse()) await end();
  child.kill();
  rmSync(work, { recursive: true, force: true });
};

async function until(what, check, tries = 100) {
  for (let round = 0; round < tries; round += 1) {
    const found = await check();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error(`never: ${what}\n${log.slice(-2000)}`);
}

const field = (name) => until(name, () => {
  const line = log.split("\n").find((one) => one.includes(`"${name}":`));
  return line && JSON.parse(line)[name];
});

let id = 0;
async function call(address, name, args, client = "tester") {
  const reply = await fetch(`http://${address}/mcp`, {
    method: "POST",
    headers: {
      "content-type": "application/json", accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name, "mcp-param-root": "workspace",
    },
    body: JSON.stringify({
      jsonrpc: "2.0", id: id += 1, method: "tools/call", params: {
        name, arguments: { root: "workspace", ...args },
        _meta: {
          "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": { name: client, version: "1" },
          "io.modelcontextprotocol/clientCapabilities": {},
        },
      },
    }),
  });
  const body = await reply.json();
  assert.ok(body.result, JSON.stringify(body));
  return body.result;
}

async function picture(page, name) {
  if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`) });
}

async function run() {
  const address = await field("address");
  const admin = await field("admin");
  const browser = await browserType.launch({ executablePath: chromium, args: ["--no-sandbox"] });
  ended.push(() => browser.close());
  const context = await browser.newContext({ viewport: { width: 1200, height: 850 } });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (line) => { if (line.type() === "error" && !line.text().includes("401")) faults.push(line.text()); });
  page.on("dialog", (dialog) => { faults.push(`a name made a dialog: ${dialog.message()}`); dialog.dismiss(); });

  // A wrong token, then the right one.
  await page.goto(`http://${admin}/`);
  await page.getByLabel(/A token of/).fill("wrong-token-0123456789");
  await page.getByRole("button", { name: "Open" }).click();
  await page.getByText("The token is not valid").waitFor();
  await page.getByLabel(/A token of/).fill(TOKEN);
  await page.keyboard.press("Enter");
  await page.getByText(/^connected/).waitFor();
  assert.equal(await page.evaluate(() => document.cookie), "");

  // Calls as they end; names that would be markup are text.
  const evil = `<img src=x onerror=alert(1)>"'&.txt`;
  await call(address, "write_file", { path: evil, content: "one" }, "<script>alert(2)</script>");
  await call(address, "write_file", { path: evil, content: "two" });
  await call(address, "read_file", { path: "../../etc/passwd" });
  const rows = page.locator("#calls-rows .row");
  await until("three rows", async () => await rows.count() === 3);
  assert.match(await rows.nth(2).innerText(), /<img src=x onerror=alert/);
  assert.equal(await page.locator("#calls img, #calls script").count(), 0);
  assert.match(await rows.nth(0).innerText(), /path_outside_root/);
  await picture(page, "admin-live");
  await page.getByLabel("Outcome").selectOption("violation");
  await until("one violation", async () => await rows.count() === 1);
  await page.getByLabel("Outcome").selectOption("");

  // Roots.
  await page.getByRole("button", { name: "Roots" }).click();
  await page.getByRole("heading", { name: "workspace" }).waitFor();
  await page.getByText(/6 B of 976.6 KiB|3 B of 976.6 KiB/).waitFor();
  await picture(page, "admin-roots");

  // History: what will happen is shown first, then it is done.
  await page.getByRole("button", { name: "History" }).click();
  const take = page.getByRole("button", { name: "Undo" });
  await until("two changes", async () => await take.count() === 2);
  await picture(page, "admin-history");
  await take.first().click();
  await page.getByText(/put back what/).waitFor();
  assert.equal(readFileSync(join(work, "root", evil), "utf8"), "two");
  await page.locator("#confirm-yes").click();
  await until("taken back", () => readFileSync(join(work, "root", evil), "utf8") === "one");
  await page.getByText(/undone by/).waitFor();

  // What a change did to lines, as text.
  await call(address, "write_file", { path: "notes.txt", content: "same\n<b>old</b>\n" });
  await call(address, "write_file", { path: "notes.txt", content: "same\n<b>new</b>\n" });
  await page.getByRole("button", { name: "Show", exact: true }).click();
  const seeDiff = page.getByRole("button", { name: "Diff" });
  await until("more changes", async () => await seeDiff.count() >= 4);
  await seeDiff.first().click();
  await page.locator(".diff").waitFor();
  assert.match(await page.locator(".diff").innerText(), /-<b>old<\/b>\n\+<b>new<\/b>/);
  assert.equal(await page.locator(".diff b").count(), 0);
  await picture(page, "admin-diff");
  await seeDiff.first().click();
  await until("the diff is closed", async () => await page.locator(".diff").count() === 0);

  // A removed file is brought back; what will happen is shown first.
  await call(address, "remove_file", { path: "notes.txt" });
  await page.getByRole("button", { name: "Show", exact: true }).click();
  await page.getByRole("button", { name: "Restore notes.txt" }).first().click();
  await page.getByText(/make notes.txt as it was/).waitFor();
  assert.ok(!existsSync(join(work, "root", "notes.txt")));
  await page.locator("#confirm-yes").click();
  await until("it is back", () => existsSync(join(work, "root", "notes.txt")));
  assert.equal(readFileSync(join(work, "root", "notes.txt"), "utf8"), "same\n<b>new</b>\n");

  // What check warns of stands at its root.
  await page.getByRole("button", { name: "Roots" }).click();
  await page.locator(".risks").getByText(/usually holds? secrets/).waitFor();

  await manyRows(page, address, rows);

  // A client is kept out, and let in again.
  await page.getByRole("button", { name: "Clients" }).click();
  await page.getByRole("button", { name: "Suspend" }).first().click();
  await page.locator("#confirm-yes").click();
  await page.getByRole("button", { name: "Let in again" }).waitFor();
  const refused = await call(address, "read_file", { path: evil });
  assert.equal(refused.isError, true);
  assert.match(refused.content[0].text, /suspended/);
  // What was refused before it became a call is told by its sender.
  await fetch(`http://${address}/mcp`, { method: "POST", headers: { "content-type": "text/plain" }, body: "no message" });
  await page.getByRole("button", { name: "Roots" }).click();
  await page.getByRole("button", { name: "Clients" }).click();
  await page.locator("#refused-rows .refused").getByText("127.0.0.1").waitFor();
  await picture(page, "admin-clients");
  await page.getByRole("button", { name: "Let in again" }).click();
  await page.getByRole("button", { name: "Suspend" }).first().waitFor();
  assert.equal((await call(address, "read_file", { path: evil })).isError, false);

  // With the keyboard alone: from the top to another view.
  await page.reload();
  await page.getByText(/^connected/).waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Roots", exact: true }).waitFor();

  // Narrow, wide, dark: nothing wider than the window.
  for (const [width, scheme] of [[400, "dark"], [2000, "light"]]) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme: scheme });
    for (const view of ["Live", "Roots", "History", "Clients"]) {
      await page.getByRole("button", { name: view, exact: true }).click();
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(overflow <= 0, `${view} at ${width}: ${overflow} px too wide`);
    }
    await page.getByRole("button", { name: "Live", exact: true }).click();
    await picture(page, `admin-${width}`);
  }

  if (seconds) await longRun(page, address, Number(seconds));

  // Nobody can put it into a frame, and nothing is served without the token or to another host.
  const head = await fetch(`http://${admin}/`);
  assert.equal(head.headers.get("x-frame-options"), "DENY");
  assert.match(head.headers.get("content-security-policy"), /frame-ancestors 'none'/);
  for (const name of ["live", "roots", "clients"]) assert.equal((await fetch(`http://${admin}/api/${name}`)).status, 401, name);
  assert.equal((await fetch(`http://${admin}/api/roots?token=${TOKEN}`)).status, 401);
  assert.ok(!log.includes(TOKEN), "the token is in the log");
  assert.deepEqual(faults, []);
}

// Ten thousand rows: the reader's place does not jump while more come, filters narrow them, and pause holds them.
async function manyRows(page, address, rows) {
  await page.getByRole("button", { name: "Live", exact: true }).click();
  for (let made = 0; made < 10000; made += 250) {
    await Promise.all(Array.from({ length: 250 }, (_, number) =>
      call(address, "stat_file", { path: number % 2 ? "." : "missing" }, number % 2 ? "odd-client" : "even-client")));
  }
  const height = () => page.evaluate(() => document.getElementById("calls-space").offsetHeight);
  await until("ten thousand rows", async () => await height() === 10000 * 28);
  assert.ok(await rows.count() < 100, "every row is made");

  // Somebody reads further down: the row in sight stays in sight.
  const top = () => page.evaluate(() => {
    const box = document.getElementById("calls").getBoundingClientRect();
    const inside = [...document.querySelectorAll("#calls-rows .row")].find((row) => row.getBoundingClientRect().top >= box.top);
    return inside && { text: inside.innerText, at: Math.round(inside.getBoundingClientRect().top - box.top) };
  });
  await page.evaluate(() => { document.getElementById("calls").scrollTop = 28 * 2000; });
  await call(address, "stat_file", { path: "marked-row" }, "marker");
  await page.getByLabel("Client").first().fill("marker");
  await until("the marked row alone", async () => await rows.count() === 1);
  await page.getByLabel("Client").first().fill("");
  await until("all rows again", async () => await height() === 10000 * 28);
  await page.evaluate(() => { document.getElementById("calls").scrollTop = 28 * 3000; });
  await until("rows in sight", async () => await rows.count() > 10 && await top());
  const before = await top();
  await Promise.all(Array.from({ length: 40 }, () => call(address, "stat_file", { path: "." }, "late-client")));
  await page.waitForTimeout(2500);
  const after = await top();
  assert.deepEqual(after, before, "the rows jumped");
  await page.evaluate(() => { document.getElementById("calls").scrollTop = 0; });

  // Filters by client and by root.
  await page.getByLabel("Client").first().fill("late-client");
  await until("forty rows", async () => await height() === 40 * 28);
  await page.getByLabel("Root").first().fill("no-such-root");
  await until("no rows", async () => await height() === 0);
  await page.getByLabel("Root").first().fill("workspace");
  await until("forty rows again", async () => await height() === 40 * 28);
  await page.getByLabel("Root").first().fill("");

  // Pause: nothing is added until it goes on, and then everything.
  await page.getByRole("button", { name: "Pause" }).click();
  await Promise.all(Array.from({ length: 10 }, () => call(address, "stat_file", { path: "." }, "late-client")));
  await page.getByText(/^10 more$/).waitFor();
  assert.equal(await height(), 40 * 28);
  await page.getByRole("button", { name: "Go on" }).click();
  await until("fifty rows", async () => await height() === 50 * 28);
  await page.getByLabel("Client").first().fill("");
}

// Five hundred calls a second while the page is open: the server's memory stays flat, and the page answers.
async function longRun(page, address, time) {
  const memory = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))[1]) / 1024;
  const end = Date.now() + time * 1000;
  let made = 0;
  let early;
  let slowest = 0;
  while (Date.now() < end) {
    const second = Date.now();
    const burst = Array.from({ length: 500 }, () => call(address, "stat_file", { path: "." }));
    await Promise.all(burst);
    made += burst.length;
    const before = Date.now();
    await page.getByRole("button", { name: made % 1000 ? "Roots" : "Live", exact: true }).click();
    slowest = Math.max(slowest, Date.now() - before);
    if (early === undefined && Date.now() > end - time * 800) early = memory();
    await new Promise((done) => setTimeout(done, Math.max(0, 1000 - (Date.now() - second))));
  }
  await page.getByRole("button", { name: "Live", exact: true }).click();
  const late = memory();
  console.log(`${made} calls in ${time} s; memory ${early?.toFixed(1)} MiB early, ${late.toFixed(1)} MiB at the end; slowest click ${slowest} ms`);
  assert.ok(made / time >= 450, `only ${(made / time).toFixed(0)} calls a second were made`);
  assert.ok(slowest < 2000, `a click took ${slowest} ms`);
  assert.ok(late < early + 16, "memory grew");
}

try {
  await run();
} finally {
  await finish();
}
