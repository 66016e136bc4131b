#!/usr/bin/env python3
"""Our tool set `memory_tool` and Anthropic's own implementation (PyPI anthropic), call by call on equal stores.

What differs is in REASONS: there the table of the tool set stands. A difference that is gone fails the run, too. Before
comparing, the header of a listing loses the words about node_modules, which our set leaves out as the documentation says, and
sizes lose a `.0`.

usage: memory_tool_differential.py BINARY
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from anthropic.tools import BetaLocalFilesystemMemoryTool

REASONS = {
    "empty last line": "a final newline makes no empty last line",
    "error word": "failures begin with the word Error, as the documentation of the tool has it",
    "snippet": "the reply to str_replace has no sentence before the lines, and shows all changed lines",
    "insert range": "the range is told as the documentation of the tool has it",
    "directory": "a directory is told as a path that does not exist",
    "root X": "/memoriesX is not /memories",
    "both faults": "of two faults of rename the missing source is told",
    "missing argument": "a missing argument is a readable text; there it is an exception of the language",
    "delete top": "the word Error begins it",
    "new_str": "new_str may be left out",
}


def tidy(text: str) -> str:
    return re.sub(r"(?m)^(\d+)\.0([KMG]\t)", r"\1\2", text)


class Ours:
    def __init__(self, binary: str, base: Path):
        command = [binary, "--toolset", "memory_tool", "--base-path", str(base)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.last = 0
        told = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "differ", "version": "1"}}
        self.request("initialize", told)

    def request(self, method, params):
        self.last += 1
        message = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["result"]

    def call(self, **arguments):
        result = self.request("tools/call", {"name": "memory", "arguments": arguments})
        assert len(result["content"]) == 1 and "structuredContent" not in result, result
        text = result["content"][0]["text"]
        return tidy(text.replace(" and node_modules:", ":")), result["isError"]


class Theirs:
    def __init__(self, base: Path):
        self.tool = BetaLocalFilesystemMemoryTool(str(base))

    def call(self, **arguments):
        try:
            return tidy(self.tool.call(arguments)), False
        except Exception as error:  # their ToolError, or whatever the language says
            return str(error), True


def calls():
    def view(path, **more):
        return {"command": "view", "path": path, **more}

    def create(path, text):
        return {"command": "create", "path": path, "file_text": text}

    def replace(path, old, new):
        return {"command": "str_replace", "path": path, "old_str": old, "new_str": new}

    def insert(path, line, text):
        return {"command": "insert", "path": path, "insert_line": line, "insert_text": text}

    def delete(path):
        return {"command": "delete", "path": path}

    def rename(old, new):
        return {"command": "rename", "old_path": old, "new_path": new}

    yield view("/memories"), None
    yield create("/memories/a.md", "one\ntwo\nthree"), None
    yield create("/memories/sub/b.md", "x" * 2000), None
    yield create("/memories/sub/deep/c.md", "é\n"), None
    yield create("/memories/.hidden", "h"), None
    yield create("/memories/a.md", "again"), "error word"
    yield view("/memories/a.md"), None
    yield view("/memories/sub/deep/c.md"), "empty last line"
    yield view("/memories/a.md", view_range=[2, 3]), None
    yield view("/memories/a.md", view_range=[2, -1]), None
    yield view("/memories/a.md", view_range=[1, 1]), None
    yield view("/memories/a.md", view_range=[0, 2]), None
    yield view("/memories/a.md", view_range=[1, 99]), None
    yield view("/memories"), None
    yield view("/memories/sub"), None
    yield view("/memories/none"), None
    yield view("/etc/passwd"), None
    yield view("memories/a.md"), None
    yield view("/memories/../../etc/passwd"), None
    yield view("/memories/sub/../../x"), None
    yield view("/memories/sub/../a.md"), None
    yield view("/memoriesX"), "root X"
    yield replace("/memories/a.md", "two", "2"), "snippet"
    yield view("/memories/a.md"), None
    yield replace("/memories/a.md", "nine", "9"), None
    yield replace("/memories/a.md", "e", "E"), None
    yield replace("/memories/none", "x", "y"), "error word"
    yield replace("/memories/sub", "x", "y"), "directory"
    yield insert("/memories/a.md", 0, "zero"), None
    yield insert("/memories/a.md", 2, "between\n"), None
    yield insert("/memories/a.md", 5, "last"), None
    yield view("/memories/a.md"), "empty last line"
    yield insert("/memories/a.md", 99, "x"), "insert range"
    yield insert("/memories/a.md", -1, "x"), "insert range"
    yield insert("/memories/none", 0, "x"), "error word"
    yield insert("/memories/sub", 0, "x"), "directory"
    yield rename("/memories/a.md", "/memories/moved/a.md"), None
    yield view("/memories/moved/a.md"), "empty last line"
    yield rename("/memories/none", "/memories/x"), "error word"
    yield rename("/memories/moved/a.md", "/memories/sub/b.md"), "error word"
    yield rename("/memories/none", "/memories/sub/b.md"), "both faults"
    yield rename("/memories/sub", "/memories/renamed"), None
    yield rename("/memories", "/memories/x"), "error word"
    yield rename("/memories/renamed", "/elsewhere"), None
    yield delete("/memories/renamed/b.md"), None
    yield delete("/memories/renamed/b.md"), "error word"
    yield delete("/memories/renamed"), None
    yield delete("/memories"), "delete top"
    yield delete("/etc/passwd"), None
    yield view("/memories"), None
    yield {"command": "view"}, "missing argument"
    yield {"command": "create", "path": "/memories/z"}, "missing argument"
    yield {"command": "str_replace", "path": "/memories/moved/a.md", "old_str": "zero\n"}, "new_str"


def main() -> int:
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "ours").mkdir()
        ours, theirs = Ours(sys.argv[1], Path(home) / "ours"), Theirs(Path(home) / "them")
        wrong, count, same, used = [], 0, 0, set()
        for arguments, reason in calls():
            count += 1
            one, other = ours.call(**arguments), theirs.call(**arguments)
            if one == other and reason is None:
                same += 1
            elif one == other:
                wrong.append(f"{arguments}: the same, but a difference is listed: {REASONS[reason]}")
            elif reason is None:
                wrong.append(f"{arguments}\n  ours   {one!r}\n  theirs {other!r}")
            else:
                used.add(reason)
                if one[1] != other[1] and reason not in ("root X", "new_str"):
                    wrong.append(f"{arguments}: one fails and the other does not: {one} {other}")
        ours.process.stdin.close()
        ours.process.wait(timeout=10)
        wrong += [f"no call shows this difference: {REASONS[reason]}" for reason in sorted(REASONS.keys() - used)]
        print("\n".join(wrong))
        print(f"{count} calls: {same} the same, {count - same} differ as listed or are wrong ({len(wrong)})")
        return 1 if wrong else 0


sys.exit(main())
