// Counts what the tool list costs a model before it has done anything: the o200k tokens of names, descriptions and input
// schemas, as clients hand them over. Each set has a bound.
//
// usage: tokens.mjs BINARY
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.home}/node/package.json`);
const { countTokens } = require('gpt-tokenizer/encoding/o200k_base');

const BOUNDS = { workspace: 3400, files: 2000, memory: 1000, guide: 2000 };

let over = false;
for (const [set, bound] of Object.entries(BOUNDS)) {
  const output = execFileSync(process.argv[2], ['tools', '--toolset', set, '--format', 'json'], { encoding: 'utf8' });
  const { tools } = JSON.parse(output);
  const counted = tools.map(({ name, description, inputSchema }) => [countTokens(JSON.stringify({ name, description, inputSchema })), name]);
  const total = counted.reduce((sum, [tokens]) => sum + tokens, 0);
  const each = counted.sort((one, other) => other[0] - one[0]).map(([tokens, name]) => `${name} ${tokens}`);
  console.log(`${set}: ${total} tokens of at most ${bound} (${each.join(', ')})`);
  over ||= total > bound;
}
process.exit(over ? 1 : 0);
