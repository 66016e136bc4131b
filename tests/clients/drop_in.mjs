// The official TypeScript SDK with the reference server's entry, and with ours in its place: only the command differs, and
// every reply has to be the same.
//
// usage: drop_in.mjs MODULES BINARY REFERENCE
import assert from 'node:assert/strict';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [modules, binary, reference] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');

function calls(directory) {
  const note = join(directory, 'note.md');
  return [
    ['create_directory', { path: join(directory, 'sub') }],
    ['write_file', { path: note, content: 'one\ntwo\n' }],
    ['edit_file', { path: note, edits: [{ oldText: 'two', newText: 'three' }] }],
    ['read_text_file', { path: note }],
    ['read_multiple_files', { paths: [note, join(directory, 'missing.md')] }],
    ['list_directory_with_sizes', { path: directory }],
    ['list_allowed_directories', {}],
  ];
}

async function session(command, args) {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'drop-in-')));
  const client = new Client({ name: 'drop-in', version: '1' });
  try {
    await client.connect(new StdioClientTransport({ command, args: [...args, directory], stderr: 'ignore' }));
    const answers = [(await client.listTools()).tools.map(tool => tool.name).sort()];
    for (const [name, given] of calls(directory)) answers.push([name, await client.callTool({ name, arguments: given })]);
    return answers.map(answer => JSON.stringify(answer).replaceAll(directory, 'DIRECTORY'));
  } finally {
    await client.close();
    rmSync(directory, { recursive: true });
  }
}

// isError: false may be said or left out.
const plain = answers => answers.map(answer => answer.replace(',"isError":false', ''));
const sorted = answers => plain(answers).map(answer => JSON.stringify(order(JSON.parse(answer))));
function order(value) {
  if (Array.isArray(value)) return value.map(order);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.keys(value).sort().map(key => [key, order(value[key])]));
}

const ours = sorted(await session(binary, ['--toolset', 'reference']));
const theirs = sorted(await session(reference, []));
assert.deepEqual(ours, theirs);
console.log(`${ours.length} replies are the same`);
