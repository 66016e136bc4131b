// The official TypeScript SDK, in its first generation (package sdk) and its second (package client). The first speaks
// the revisions that know sessions; the second does so, too, and the newest revision besides.
//
// usage: with_typescript.mjs sdk|client MODULES stdio BINARY WORKSPACE
//        with_typescript.mjs sdk|client MODULES http|sessions|guide URL
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { setTimeout as pause } from 'node:timers/promises';

const [name, modules, kind, ...target] = process.argv.slice(2);
const first = name === 'sdk';
const require = createRequire(`${modules}/`);
// How many tools `mcp-filesystem tools` tells, from tests/clients/run.
const TOOLS = Number(process.env.TOOLS);
const TEXT = 'first line\nzweite Größe\n';
const FILES = { 'docs/plan.md': '# Plan\n', 'docs/größe.txt': 'naïve\n' };

function load() {
  const parts = first
    ? ['sdk/client/index.js', 'sdk/client/stdio.js', 'sdk/client/streamableHttp.js', 'sdk/types.js']
    : ['client', 'client/stdio'];
  return Object.assign({}, ...parts.map(part => require(`@modelcontextprotocol/${part}`)));
}

const sdk = load();

// Whatever the SDK complains about, on any of its ways.
const complaints = [];
for (const level of ['warn', 'error']) {
  console[level] = (...words) => complaints.push(words.join(' '));
}
process.on('warning', warning => complaints.push(String(warning)));

function transport() {
  return kind === 'stdio'
    ? new sdk.StdioClientTransport({ command: target[0], args: target.slice(1) })
    : new sdk.StreamableHTTPClientTransport(new URL(target[0]));
}

function answer({ params }) {
  const prompt = params.messages[0].content.text;
  const marker = prompt.split('\n').find(line => line.startsWith('FILE '));
  const path = JSON.parse(marker.split(' ').slice(2).join(' '));
  const text = path in FILES ? `${marker}\n${FILES[path]}` : `File not found: "${path}"`;
  return { role: 'assistant', model: 'none', content: { type: 'text', text } };
}

async function openSessions() {
  if (kind === 'stdio') return 0;
  const page = await (await fetch(new URL('/metrics', target[0]))).text();
  return Number(page.match(/^mcp_filesystem_sessions (\d+)$/m)[1]);
}

// Connects in one of the second generation's modes, does the work, and takes leave as a good client does.
async function visit(mode, session, work) {
  const capabilities = kind === 'guide' ? { sampling: {} } : {};
  const client = new sdk.Client({ name: 'judge', version: '1.0.0' }, { capabilities, versionNegotiation: { mode } });
  client.onerror = error => complaints.push(String(error));
  if (kind === 'guide') {
    client.setRequestHandler(first ? sdk.CreateMessageRequestSchema : 'sampling/createMessage', answer);
  }
  // A client that failed may have left sessions behind.
  const before = await openSessions();
  const wire = transport();
  await client.connect(wire);
  await work(client);
  if (kind !== 'stdio') {
    assert.equal(wire.sessionId !== undefined, session, 'a session, or none');
    assert.equal(await openSessions(), before + (session ? 1 : 0));
    await wire.terminateSession();
    assert.equal(await openSessions(), before, 'the session is still there after its end');
  }
  // That the end aborts a stream that was still open is no complaint.
  client.onerror = error => String(error).includes('AbortError') || complaints.push(String(error));
  await client.close();
}

async function workspace(client) {
  const call = (name, more, options = []) => client.callTool({ name, arguments: { root: 'workspace', ...more } }, ...options);

  const { tools } = await client.listTools();
  assert.equal(tools.length, TOOLS);
  const schema = name => tools.find(tool => tool.name === name).inputSchema;
  assert.deepEqual(schema('stat_file').required, ['path']);
  assert.equal(schema('grep').properties.pattern.type, 'string');

  // The SDK checks every reply against the tool's output schema.
  const read = await call('read_file', { path: 'hello.txt' });
  assert.match(read.content[0].text, /Hello World/);
  assert.equal(read.structuredContent.content, 'Hello World\n');

  const missing = await call('read_file', { path: 'helo.txt' });
  assert.ok(missing.isError && missing.content[0].text.includes('did you mean hello.txt'), missing.content[0].text);
  const wrong = await call('read_file', { path: 'hello.txt', offset_lines: 'many' });
  assert.ok(wrong.isError && wrong.content[0].text.includes('offset_lines must be an integer'), wrong.content[0].text);

  const written = await call('write_file', { path: 'written/note.txt', content: TEXT });
  assert.equal(written.structuredContent.size, Buffer.byteLength(TEXT));
  const again = await call('read_file', { path: 'written/note.txt' });
  assert.equal(again.structuredContent.content, TEXT);
  await call('remove_folder', { path: 'written' });

  const found = await call('grep', { pattern: 'W.rld' });
  assert.equal(found.structuredContent.matches[0].file, 'hello.txt');

  // The first generation takes a schema of the reply before the options.
  const hash = options => call('hash_file', { path: 'large', algorithm: 'md5' }, first ? [undefined, options] : [options]);
  const steps = [];
  await hash({ onprogress: ({ progress }) => steps.push(progress) });
  assert.ok(steps.length > 0 && steps.every((step, index) => index === 0 || step > steps[index - 1]), String(steps));

  // Cancelled while it works: at the first progress.
  const stop = new AbortController();
  await assert.rejects(hash({ signal: stop.signal, onprogress: () => stop.abort('enough') }), /enough/);
  const after = await call('read_file', { path: 'hello.txt' });
  assert.equal(after.structuredContent.content, 'Hello World\n', 'the connection goes on');
}

async function guide(client) {
  assert.equal((await client.listTools()).tools.length, 6);
  const request = async more =>
    (await client.callTool({ name: 'guide_request_file', arguments: more })).structuredContent;
  for (const [path, text] of Object.entries(FILES)) {
    for (const source of ['client', 'cache']) {
      const { data } = await request({ path, refresh: source === 'client' });
      assert.deepEqual([data.content, data.source], [text, source]);
    }
  }
  assert.equal((await request({ path: 'docs/none', refresh: true })).error_type, 'not_found');
  assert.equal((await request({ path: '../x' })).error_type, 'security');
}

const work = kind === 'guide' ? guide : workspace;
const modes = { sessions: ['legacy'], guide: ['auto', 'legacy'] }[kind] ?? ['auto'];
for (const mode of first ? ['legacy'] : modes) {
  await visit(mode, mode === 'legacy' && ['sessions', 'guide'].includes(kind), work);
}
// What is still under way may complain, too.
await pause(500);
assert.deepEqual(complaints, []);
