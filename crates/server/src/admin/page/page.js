// The operator's page. Everything that comes from the server is put in as text, never as markup: names of files and clients
// may hold anything.

const TOKEN = "mcp-filesystem-admin-token";
const ROW = 28;
const KEPT = 10000;
const EVERY = 1000;

const find = (id) => document.getElementById(id);
const make = (tag, text, name) => {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.textContent = text;
  if (name) element.className = name;
  return element;
};

let token = sessionStorage.getItem(TOKEN);
let next = 0;
let calls = [];
let shown = [];
let held = 0;
let paused = false;
let view = "live";
let lastCpu = null;

class Refused extends Error {}

async function ask(name, body) {
  const options = { headers: { authorization: `Bearer ${token}` }, cache: "no-store" };
  if (body !== undefined) {
    options.method = "POST";
    options.headers["content-type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const reply = await fetch(`/api/${name}`, options);
  if (reply.status === 401) throw new Refused("The token is not valid");
  if (!reply.ok) throw new Error((await reply.text()).replace(/^[A-Za-z ]+: /, ""));
  return reply.json();
}

function say(text, bad) {
  const state = find("state");
  if (state.textContent !== text) state.textContent = text;
  state.className = bad ? "bad" : "";
}

function size(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) { bytes /= 1024; unit += 1; }
  return `${unit === 0 ? bytes : bytes.toFixed(1)} ${units[unit]}`;
}

function span(seconds) {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} days`;
}

const took = (milliseconds) => milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds).toString();
const clock = (time) => new Date(time).toLocaleTimeString([], { hour12: false });
const when = (time) => new Date(time).toLocaleString([], { hour12: false });

// Live

function figures(live) {
  const list = find("figures");
  const now = performance.now();
  let cpu = "–";
  if (lastCpu && live.cpu_seconds !== null) {
    cpu = `${Math.max(0, (live.cpu_seconds - lastCpu.seconds) / ((now - lastCpu.at) / 1000) * 100).toFixed(0)} %`;
  }
  lastCpu = { seconds: live.cpu_seconds, at: now };
  const all = [
    ["Up", span(live.uptime_seconds)], ["Memory", size(live.memory_bytes)], ["CPU", cpu], ["Running", live.running],
    ["Waiting", live.waiting], ["Held", size(live.held_bytes)],
  ];
  if (live.connections !== undefined) all.push(["Connections", live.connections], ["Sessions", live.sessions]);
  while (list.children.length > all.length) list.lastChild.remove();
  all.forEach(([name, value], index) => {
    let box = list.children[index];
    if (!box) {
      box = make("div");
      box.append(make("dt"), make("dd"));
      list.append(box);
    }
    box.firstChild.textContent = name;
    box.lastChild.textContent = value;
  });
}

function line(points, most) {
  const step = 300 / Math.max(1, points.length - 1);
  return points.map((value, index) => `${index ? "L" : "M"}${(index * step).toFixed(1)} ${(58 - value / most * 54).toFixed(1)}`).join("");
}

function chart(id, series) {
  const svg = find(id);
  const most = Math.max(1, ...series.flat());
  series.forEach((points, index) => {
    let path = svg.children[index];
    if (!path) {
      path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      if (index) path.setAttribute("class", "second");
      svg.append(path);
    }
    path.setAttribute("d", line(points, most));
  });
}

function charts(seconds) {
  // Seconds without a call are not told.
  const bySecond = new Map(seconds.map((second) => [second.time, second]));
  const last = Math.floor(Date.now() / 1000) - 1;
  const range = Array.from({ length: 300 }, (_, index) => bySecond.get(last - 299 + index));
  chart("chart-calls", [range.map((second) => second?.calls ?? 0), range.map((second) => second?.failures ?? 0)]);
  chart("chart-time", [range.map((second) => second?.mean_ms ?? 0), range.map((second) => second?.max_ms ?? 0)]);
  const current = range[299];
  find("rate").textContent = `${current?.calls ?? 0}, ${current?.failures ?? 0} failed`;
  find("took").textContent = current ? `${took(current.mean_ms)}, ${took(current.max_ms)}` : "";
}

const kind = (call) => call.violation ? "violation" : call.outcome === "ok" ? "ok" : "failed";

function fits(call) {
  const form = find("filters").elements;
  const outcome = form.outcome.value;
  return (!form.client.value || call.client.includes(form.client.value))
    && (!form.root.value || (call.root ?? "").includes(form.root.value))
    && (!outcome || outcome === kind(call) || (outcome === "failed" && call.outcome !== "ok"));
}

// The log's name of a client is "program address (name)". The column is narrow, so the name comes first.
function clientFirst(shown) {
  const [, rest, name] = shown.match(/^(.*) \((.*)\)$/) ?? [];
  return name ? `${name} ${rest}` : shown;
}

function callRow(call) {
  const row = make("div", null, "row");
  const what = call.reason ? `${call.path ?? ""}  ${call.reason}` : call.path ?? "";
  row.append(
    make("span", clock(call.time)), make("span", clientFirst(call.client)), make("span", call.tool), make("span", call.root ?? ""),
    make("span", what), make("span", call.outcome ?? "", call.outcome ? kind(call) : ""),
    make("span", `${took(call.milliseconds)} ms`, "number"),
  );
  row.children[1].title = call.client;
  row.children[4].title = what;
  return row;
}

function head(names) {
  const row = make("div", null, "row head");
  row.append(...names.map((name) => make("span", name)));
  return row;
}

// Only the rows that are in sight are made, so that ten thousand of them cost no more than thirty.
function drawCalls() {
  const box = find("calls");
  find("calls-space").style.height = `${shown.length * ROW}px`;
  const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 10);
  const count = Math.ceil(box.clientHeight / ROW) + 20;
  const rows = find("calls-rows");
  rows.style.top = `${first * ROW}px`;
  const newest = shown.length - 1;
  const part = [];
  for (let index = first; index < Math.min(first + count, shown.length); index += 1) part.push(callRow(shown[newest - index]));
  rows.replaceChildren(...part);
}

function filtered() {
  shown = calls.filter(fits);
  drawCalls();
}

function addCalls(live) {
  next = live.next;
  if (paused) {
    held += live.ended.length + live.missed;
    find("held").textContent = `${held} more`;
    pausedCalls.push(...live.ended);
    pausedCalls = pausedCalls.slice(-KEPT);
    return;
  }
  const box = find("calls");
  const added = live.ended.filter(fits).length;
  calls.push(...live.ended);
  if (calls.length > KEPT) calls = calls.slice(-KEPT);
  shown = calls.filter(fits);
  // Whoever reads further down keeps the place.
  if (box.scrollTop > 0) box.scrollTop += added * ROW;
  drawCalls();
}

let pausedCalls = [];

function drawRunning(live) {
  find("running-count").textContent = live.running_total ? `(${live.running_total})` : "";
  const rows = live.running.filter((call) => fits({ ...call, outcome: "ok", violation: false })).map(callRow);
  find("running").replaceChildren(...(rows.length ? rows : [make("div", "No call runs right now.", "row")]));
}

async function refresh() {
  const live = await ask(`live?after=${next}`);
  find("version").textContent = live.version;
  figures(live);
  charts(live.calls.seconds);
  addCalls(live.calls);
  if (!paused) drawRunning(live.calls);
  say(`connected, ${clock(Date.now())}`);
  // One answer holds a part of what is kept.
  if (live.calls.more > 0) await refresh();
}

// Roots

async function roots() {
  const told = await ask("roots");
  find("protection").textContent = `Kernel protection: ${told.protection}`;
  find("warnings").replaceChildren(...told.warnings.map((warning) => make("li", warning)));
  find("root-cards").replaceChildren(...told.roots.map(rootCard));
  const choice = find("history-root");
  const chosen = choice.value;
  choice.replaceChildren(...told.roots.map((root) => make("option", root.name)));
  if (chosen) choice.value = chosen;
}

function rootCard(root) {
  const card = make("article", null, "card");
  const list = make("dl");
  const add = (name, value, style) => list.append(make("dt", name), make("dd", value, style));
  add("Directory", root.up ? "there" : "gone", root.up ? "ok" : "violation");
  add("Rights", root.read_only ? "read only" : "read and write");
  add("Tools", root.tools === "all" ? "all" : root.tools.join(", "));
  card.append(make("h3", root.name), list);
  if (root.quota) {
    const parts = [["bytes", size], ["files", (value) => value ?? "–"]];
    for (const [what, written] of parts) {
      const most = root.quota[`max_${what}`];
      if (!most) continue;
      add(what === "bytes" ? "Bytes" : "Entries", `${written(root.quota[what])} of ${written(most)}`);
      const meter = make("meter");
      meter.max = most;
      meter.value = root.quota[what] ?? 0;
      meter.title = what;
      card.append(meter);
    }
  }
  if (root.history) {
    const oldest = root.history.oldest_ms ? `, since ${when(root.history.oldest_ms)}` : "";
    add("History", `${root.history.changes} changes, ${size(root.history.bytes)}${oldest}`);
    add("Kept", root.history.in_root ? "in the root" : "in the state directory");
  } else {
    add("History", "none is kept");
  }
  if (root.risks?.length) {
    const risks = make("ul", null, "risks");
    risks.append(...root.risks.map((risk) => make("li", risk)));
    card.append(risks);
  }
  return card;
}

// History

const words = {
  create: "created", replace: "replaced", append: "added to", cut: "cut", remove: "removed", remove_dir: "removed",
  make_dir: "made", move: "moved",
};

function part(one) {
  const word = words[one.kind] ?? one.kind;
  const to = one.to ? ` to ${one.to}` : "";
  return `${word} ${one.path}${to}${one.kept ? "" : " (what was there is not kept)"}`;
}

async function history() {
  const form = find("history-form").elements;
  if (!form.root.value) await roots();
  if (!form.root.value) return;
  const told = await ask("changes", { root: form.root.value, path: form.path.value, client: form.client.value });
  const note = !told.kept ? "This root keeps no history." : told.changes.length ? "" : "There is no such change.";
  find("history-note").textContent = note;
  find("changes").replaceChildren(...told.changes.map(changeRow));
}

function changeRow(change) {
  const row = make("li", null, change.undone_by ? "undone" : "");
  const time = make("time", when(change.time_ms));
  time.dateTime = new Date(change.time_ms).toISOString();
  const parts = change.parts.slice(0, 4).map(part);
  if (change.parts.length > 4) parts.push(`and ${change.parts.length - 4} more`);
  row.append(make("code", change.change), time, make("span", `${change.tool || "?"}: ${parts.join("; ")}`, "what"), make("span", change.client, "who"));
  if (change.undone_by) {
    row.append(make("span", `undone by ${change.undone_by}`));
  } else {
    const button = make("button", "Undo");
    button.type = "button";
    button.addEventListener("click", () => undo(change).catch(failed));
    row.append(button);
  }
  const seeDiff = make("button", "Diff");
  seeDiff.type = "button";
  seeDiff.setAttribute("aria-expanded", "false");
  seeDiff.addEventListener("click", () => diff(change, row, seeDiff).catch(failed));
  row.append(seeDiff);
  for (const one of change.parts.filter((one) => one.kind === "remove" && one.kept).slice(0, 20)) {
    const button = make("button", `Restore ${one.path}`);
    button.type = "button";
    button.addEventListener("click", () => restore(change, one.path).catch(failed));
    row.append(button);
  }
  return row;
}

// What a change did to lines, below its row; a second click closes it.
async function diff(change, row, button) {
  const there = row.querySelector(".diff");
  button.setAttribute("aria-expanded", String(!there));
  if (there) { there.remove(); return; }
  const told = await ask("diff", { root: find("history-root").value, change: change.change });
  const box = make("pre", null, "diff");
  box.tabIndex = 0;
  const lines = told.diff ? told.diff.replace(/\n$/, "").split("\n") : [`No lines are known: ${told.reason}.`];
  for (const text of lines) {
    const style = /^(\+\+\+|---|@@)/.test(text) ? "soft" : text.startsWith("+") ? "ok" : text.startsWith("-") ? "violation" : "";
    box.append(make("span", `${text}\n`, style));
  }
  if (told.truncated) box.append(make("span", "… more is not shown\n", "soft"));
  row.append(box);
}

// One file of a change is brought back; what will happen is shown first.
async function restore(change, path) {
  const root = find("history-root").value;
  let rehearsal;
  try {
    rehearsal = await ask("restore", { root, change: change.change, path, dry_run: true });
  } catch (error) {
    if (error instanceof Refused) throw error;
    await confirmed(`${path} cannot be restored`, [], error.message, "Close");
    return;
  }
  const what = [`make ${rehearsal.path} as it was before ${change.change}, ${size(rehearsal.size)}`];
  const yes = await confirmed(`Restore ${path}?`, what, "This is a change itself, and can be undone too.", "Restore");
  if (!yes) return;
  await ask("restore", { root, change: change.change, path, dry_run: false });
  await history();
}

function confirmed(title, what, note, yes) {
  const dialog = find("confirm");
  find("confirm-title").textContent = title;
  find("confirm-what").replaceChildren(...what.map((one) => make("li", one)));
  find("confirm-note").textContent = note;
  find("confirm-yes").textContent = yes;
  return new Promise((done) => {
    const end = (answer) => { dialog.close(); done(answer); };
    find("confirm-yes").onclick = () => end(true);
    find("confirm-no").onclick = () => end(false);
    dialog.oncancel = () => done(false);
    dialog.showModal();
    find("confirm-no").focus();
  });
}

const reverse = {
  create: (one) => `remove ${one.path}`, replace: (one) => `put back what ${one.path} was`, append: (one) => `cut ${one.path} back`,
  cut: (one) => `add to ${one.path} what was cut`, remove: (one) => `bring back ${one.path}`, remove_dir: (one) => `bring back ${one.path}`,
  make_dir: (one) => `remove ${one.path}`, move: (one) => `move ${one.to} back to ${one.path}`,
};

async function undo(change) {
  const root = find("history-root").value;
  let rehearsal;
  try {
    rehearsal = await ask("undo", { root, change: change.change, dry_run: true });
  } catch (error) {
    if (error instanceof Refused) throw error;
    await confirmed(`${change.change} cannot be undone`, [], error.message, "Close");
    return;
  }
  const what = rehearsal.parts.map((one) => (reverse[one.kind] ?? part)(one));
  const yes = await confirmed(`Undo ${change.change}?`, what, "This is a change itself, and can be undone too.", "Undo");
  if (!yes) return;
  await ask("undo", { root, change: change.change, dry_run: false });
  await history();
}

// Clients

async function clients() {
  const told = await ask("clients");
  const rows = told.clients.map((client) => {
    const row = make("div", null, "row client");
    const name = make("span", client.name || client.client);
    name.title = client.client;
    const button = make("button", client.suspended ? "Let in again" : "Suspend");
    button.type = "button";
    button.addEventListener("click", () => suspend(client).catch(failed));
    row.append(
      name, make("span", client.calls, "number"), make("span", client.failures, "number"),
      make("span", client.violations, client.violations ? "number violation" : "number"), make("span", when(client.last)), button,
    );
    return row;
  });
  const title = head(["Client", "Calls", "Failed", "Violations", "Last call", ""]);
  title.classList.add("client");
  find("client-rows").replaceChildren(title, ...(rows.length ? rows : [make("div", "Nobody has called yet.", "row")]));
  showRefused(told.refused);
  find("known-clients").replaceChildren(...told.clients.map((client) => { const option = make("option"); option.value = client.name; return option; }));
}

// On stdio nothing can be refused before it is a call, and the server tells no list.
function showRefused(refused) {
  const rows = (refused ?? []).map((one) => {
    const row = make("div", null, "row refused");
    const reason = make("span", one.reason);
    reason.title = one.reason;
    const sender = make("span", one.client ? `${one.client} ${one.sender}` : one.sender, one.violation ? "violation" : "");
    sender.title = sender.textContent;
    row.append(
      sender, make("span", one.status, "violation"), make("span", one.count, "number"), make("span", when(one.last)),
      make("span", one.path), reason,
    );
    return row;
  });
  const title = head(["Sender", "Status", "Requests", "Last", "Path of the last", "Reason of the last"]);
  title.classList.add("refused");
  find("refused-rows").replaceChildren(title, ...(rows.length ? rows : [make("div", "No request was refused.", "row")]));
}

async function suspend(client) {
  const suspended = !client.suspended;
  if (suspended) {
    const note = "Its calls are refused until it is let in again, or the server restarts. What runs goes on.";
    if (!await confirmed(`Suspend ${client.name || client.client}?`, [], note, "Suspend")) return;
  }
  await ask("suspend", { client: client.client, suspended });
  await clients();
}

// The whole

const views = { live: refresh, roots, history, clients };

function open(name) {
  view = name;
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== name;
  for (const button of document.querySelectorAll("nav button")) {
    if (button.dataset.view === name) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
  }
  views[name]().catch(failed);
}

function failed(error) {
  if (error instanceof Refused) {
    leave();
    say(error.message, true);
  } else {
    say(error.message === "Failed to fetch" ? "the server does not answer" : error.message, true);
  }
}

function leave() {
  sessionStorage.removeItem(TOKEN);
  token = null;
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== "login";
  document.querySelector("nav").hidden = true;
  find("leave").hidden = true;
  find("token").focus();
}

function enter() {
  document.querySelector("nav").hidden = false;
  find("leave").hidden = false;
  roots().catch(failed);
  clients().catch(failed);
  open(view);
}

let busy = false;
setInterval(async () => {
  if (!token || busy || document.hidden) return;
  busy = true;
  try {
    await refresh();
    if (view === "clients") await clients();
    if (view === "roots") await roots();
  } catch (error) {
    failed(error);
  }
  busy = false;
}, EVERY);

find("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = find("token").value.trim();
  find("token").value = "";
  sessionStorage.setItem(TOKEN, token);
  say("");
  enter();
});
find("leave").addEventListener("click", () => { leave(); say("the token is forgotten"); });
find("filters").addEventListener("input", filtered);
find("filters").addEventListener("submit", (event) => event.preventDefault());
find("calls").addEventListener("scroll", drawCalls, { passive: true });
window.addEventListener("resize", drawCalls);
find("pause").addEventListener("click", () => {
  paused = !paused;
  find("pause").setAttribute("aria-pressed", String(paused));
  find("pause").textContent = paused ? "Go on" : "Pause";
  if (!paused) {
    calls = [...calls, ...pausedCalls].slice(-KEPT);
    pausedCalls = [];
    held = 0;
    find("held").textContent = "";
    filtered();
  }
});
find("history-form").addEventListener("submit", (event) => { event.preventDefault(); history().catch(failed); });
document.querySelector("nav").addEventListener("click", (event) => {
  const name = event.target.dataset?.view;
  if (name) open(name);
});

if (token) enter();
else leave();
