#!/usr/bin/env python3
"""Agents' work through our server and others: calls, tokens sent and received, right or wrong.

usage: run.py BINARY [--save] [--quick]
--save writes bench/AGENTS.md; --quick has a log of a fiftieth. Peers are installed by their package names below
target/agent: the reference server by npm, rust-mcp-filesystem by cargo (some minutes); what cannot be installed is left
out and named.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import corpus
import tasks
from client import Client, count

REPOSITORY = Path(__file__).resolve().parents[2]
HOME = REPOSITORY / "target/agent"
RUST_BINARY = HOME / "cargo/bin/rust-mcp-filesystem"
TOKENIZER = "gpt-tokenizer@4.0.0"
REFERENCE = "@modelcontextprotocol/server-filesystem@2026.8.31"
J0HANZ = "@j0hanz/filesystem-mcp@2.5.0"
RUST = "rust-mcp-filesystem@0.4.5"
# The counts are those of two tests, which compare them with this table.
FAULTY = """
## Faulty edits

Diffs and replacements as models write them, each with a fault: wrong counts, fences, other quotes, lines without their indentation, text that is
there twice. A row is applied as meant, or refused with enough to go on and nothing changed. The tables are `crates/ops/src/text/patch/faulty.rs`
and `crates/server/tests/spec/workspace/faulty_edits.rs`.

| | cases | applied as meant | refused | wrong |
|---|--:|--:|--:|--:|
| diffs | 60 | 31 | 29 | 0 |
| replacements | 62 | 15 | 47 | 0 |
"""
GOALS = {"tools": 3400, "calls": 30, "sent": 1900, "received": 20400}


def install() -> list[str]:
    """Installs the tokenizer and the peers; returns what could not be had."""
    HOME.mkdir(parents=True, exist_ok=True)
    missing = []
    if not (HOME / "node_modules/gpt-tokenizer").exists():
        (HOME / "package.json").write_text('{"private": true}\n')
        npm("install", TOKENIZER)
    if not (HOME / "node_modules/.bin/mcp-server-filesystem").exists() and not npm("install", REFERENCE):
        missing.append("the reference server (npm)")
    if not RUST_BINARY.exists() and not succeeds("cargo", "install", "--locked", "--root", "cargo", "--target-dir", "cargo-target", RUST):
        missing.append(f"{RUST} (Cargo)")
    if not npm("install", J0HANZ, "--no-save"):
        missing.append(f"{J0HANZ} (npm: its dependency @adguard/re2-wasm has no version ^1.2.1)")
    return missing


def npm(*words: str) -> bool:
    return succeeds("npm", *words, "--no-audit", "--no-fund", "--loglevel=error")


def succeeds(*command: str) -> bool:
    return subprocess.run(command, cwd=HOME, stdin=subprocess.DEVNULL).returncode == 0


def candidates(binary: str):
    """Name, command without the directory, the scripts of its tools."""
    yield "mcp-filesystem, `workspace`", [binary], tasks.Ours
    # The original has no limit on a reply, so ours is above every file here.
    yield "mcp-filesystem, `reference`", [binary, "--toolset", "reference", "--max-file-size", "268435456"], tasks.Reference
    reference = HOME / "node_modules/.bin/mcp-server-filesystem"
    if reference.exists():
        yield "reference server", [str(reference)], tasks.Reference
    if RUST_BINARY.exists():
        yield "rust-mcp-filesystem", [str(RUST_BINARY), "--allow-write"], tasks.RustFilesystem


def measure(name: str, command: list[str], kind, log_lines: int) -> dict:
    base = HOME / "corpus"
    shutil.rmtree(base, ignore_errors=True)
    corpus.build(base, log_lines)
    client = Client([*command, str(base)], "claude-code")
    listed = [tool_text(tool) for tool in client.tools]
    rows = tasks.run(kind(client, base, log_lines))
    client.end()
    tokens = {"sent": count(client.sent, HOME), "text": count(client.text, HOME), "shown": count(client.shown, HOME)}
    for row in rows:
        row |= {half: sum(counted[row["calls"]]) for half, counted in tokens.items()}
        row["calls"] = row["calls"].stop - row["calls"].start
    return {"name": name, "tools": len(listed), "list": sum(count(listed, HOME)), "rows": rows}


def tool_text(tool: dict) -> str:
    return json.dumps({key: tool.get(key) for key in ("name", "description", "inputSchema")}, ensure_ascii=False, separators=(",", ":"))


def total(server: dict, key: str) -> int:
    return sum(row[key] for row in server["rows"])


def cell(row: dict) -> str:
    """What one task took on one server."""
    if not row["has_tool"]:
        return "no tool"
    return f"{row['calls']} / {row['sent']:,} / {row['text']:,}" + ("" if row["right"] else " **wrong**")


def report(servers: list[dict], missing: list[str], log_lines: int) -> str:
    lines = [
        "# Agents' work", "",
        "`make bench-agent` carries out fifteen tasks with each server's own tools, as an agent would, on a directory made from a seed",
        f"(a code base, a log of {log_lines:,} lines, odd names, two directories that differ). Tokens are o200k. *Sent* are the calls,",
        "*received* the text of the replies; *as Claude Code shows it* is the structured half where a reply has one. A task is right by",
        "the bytes on disk, or by what the replies told. The scripts are in `bench/agent/tasks.py`; `reference` is started with",
        "`--max-file-size 268435456`, because the original has no limit on a reply.", "",
        "| | tools | list, tokens | calls | sent | received | as Claude Code shows it | right |", "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for server in servers:
        right = sum(row["right"] for row in server["rows"])
        figures = [server["tools"], server["list"], *[total(server, key) for key in ("calls", "sent", "text", "shown")]]
        lines.append(f"| {server['name']} | " + " | ".join(f"{figure:,}" for figure in figures) + f" | {right} of {len(server['rows'])} |")
    lines.append(f"| **goal** | | {GOALS['tools']:,} | {GOALS['calls']} | {GOALS['sent']:,} | {GOALS['received']:,} | {GOALS['received']:,} | 15 of 15 |")
    if missing:
        lines += ["", "Left out, because they could not be installed: " + ", ".join(missing) + "."]
    lines += ["", "## Each task", "", "calls / tokens sent / tokens received", ""]
    lines += ["| task | " + " | ".join(server["name"] for server in servers) + " |", "|---|" + "---|" * len(servers)]
    for at, name in enumerate(tasks.Tasks.NAMES):
        cells = []
        for server in servers:
            row = server["rows"][at]
            cells.append(cell(row))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    reasons = [f"- {server['name']}, {row['task']}: {row['why']}" for server in servers for row in server["rows"] if row["why"]]
    if reasons:
        lines += ["", "Why a task is not right:", "", *reasons]
    return "\n".join(lines) + "\n" + FAULTY


def main() -> int:
    words = sys.argv[1:]
    log_lines = corpus.LOG_LINES // 50 if "--quick" in words else corpus.LOG_LINES
    missing = install()
    servers = [measure(*candidate, log_lines) for candidate in candidates(str(Path(words[0]).resolve()))]
    text = report(servers, missing, log_lines)
    print(text)
    if "--save" in words:
        (REPOSITORY / "bench/AGENTS.md").write_text(text)
    return 0 if all(row["right"] for row in servers[0]["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())
