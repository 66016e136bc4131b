#!/usr/bin/env python3
"""Our tool set `reference` and the reference server, call by call on equal trees.

Every reply has to be the same: text, structured half, isError. What is different on purpose is in REASONS with its
reason, as in docs/reference-set.md; a difference that is gone fails the run, too. What cannot be shown side by side (a FIFO,
which the reference server waits for; other file systems; served directories that are moved away) is only in that document.

usage: reference_differential.py BINARY REFERENCE_SERVER
"""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# What is brought into one form before comparing, because the reference server promises none of it:
# - the order of entries is that of the file system there, and sorted by bytes here;
# - the times of creation and of the last access differ between two trees;
# - the names of the two trees.
UNORDERED = {"list_directory", "search_files", "directory_tree"}

REASONS = {
    "arguments": "the words about wrong arguments are ours; they begin the same",
    "null": "null is the same as leaving an argument out",
    "number": "a number in a text is taken as a number by tools that only read",
    "unknown": "a tool that is not there is an error of the protocol here",
    "link": "where a link out leads is not told",
    "twice": "an edit that matches twice is refused; there the first place is changed",
    "empty": "an empty oldText is found everywhere, so it is refused",
    "crlf": "line ends of a file stay what they are",
    "directory": "a directory in the place of a file is told without the name of a temporary file",
    "tail": "a missing file is told with the call that opens it",
    "moved link": "a link is moved itself, not what it leads to",
    "part": "a part of a line counts as a line for head and for tail",
    "negated": "a group !(…) in a pattern is refused",
    "binary": "a file that is not UTF-8 is not edited, because that would destroy it",
    "below a file": "a path below a file is told with the call that lists",
    "dangling": "a link to nothing is told as missing, with its own path",
    "control": "a control character in a message is escaped",
}


class Server:
    def __init__(self, command: list[str], base: Path):
        self.base = base
        errors = subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=base)
        self.last = 0
        told = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "differ", "version": "1"}}
        self.request("initialize", told)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method, params):
        self.last += 1
        self.write({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"the server ended during {method} {params}")
            message = json.loads(line)
            if message.get("id") == self.last:
                return message

    def call(self, tool, arguments):
        message = self.request("tools/call", {"name": tool, "arguments": in_tree(arguments, self.base)})
        if "error" in message:
            return {"error": message["error"]["message"]}
        result = message["result"]
        reply = {
            "content": result["content"],
            "structured": result.get("structuredContent"),
            "isError": bool(result.get("isError")),
        }
        return tidy(tool, json.loads(json.dumps(reply).replace(str(self.base), "BASE")))

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=10)


def in_tree(value, base):
    """Arguments with the tree's own path for BASE."""
    return json.loads(json.dumps(value).replace("BASE", str(base)))


def tidy(tool, reply):
    def text(value):
        if tool == "get_file_info":
            return re.sub(r"(created|accessed): .*", r"\1: TIME", value)
        if tool not in UNORDERED or reply["isError"]:
            return value
        if tool == "directory_tree":
            return json.dumps(sorted_tree(json.loads(value)), indent=2, ensure_ascii=False)
        return "\n".join(sorted(value.split("\n")))

    for block in reply["content"]:
        if "text" in block:
            block["text"] = text(block["text"])
    if reply["structured"] and isinstance(reply["structured"]["content"], str):
        reply["structured"]["content"] = text(reply["structured"]["content"])
    return reply


def sorted_tree(entries):
    for entry in entries:
        if "children" in entry:
            entry["children"] = sorted_tree(entry["children"])
    return sorted(entries, key=lambda entry: entry["name"])


def build(base: Path) -> None:
    """The same tree for both."""
    files = {
        "hello.txt": "Hello World\n",
        "empty.txt": "",
        "no-newline.txt": "one\ntwo\nthree",
        "lines.txt": "".join(f"line {number}\n" for number in range(1, 101)),
        "crlf.txt": "one\r\ntwo\r\nthree\r\n",
        "umlaut.txt": "Größe\nnaïve\n日本語\n",
        "bom.txt": "\ufeffwith a mark\n",
        "code.py": "def one():\n    return 1\n\n\ndef two():\n    if True:\n        return 2\n    return 3\n",
        "twice.txt": "same\nother\nsame\n",
        "blocks.txt": "a\nb\na\nb\nc\na\nb\n",
        "fences.md": "```\ncode\n```\n````x\n",
        "src/main.rs": "fn main() {}\n",
        "src/lib.rs": "//! lib\n",
        "src/deep/er/leaf.rs": "leaf\n",
        "src/deep/notes.md": "notes\n",
        ".hidden": "hidden\n",
        ".config/app.json": "{}\n",
        "node_modules/x/index.js": "x\n",
        "with space/a b.txt": "blank\n",
        "docs/[draft].md": "draft\n",
        "docs/a+b.md": "plus\n",
        "docs/UPPER.MD": "upper\n",
        "sizes/one": "1",
        "sizes/kilo": "x" * 1024,
        "sizes/kilo-and": "x" * 1500,
        "sizes/mega": "x" * (3 << 20),
        "sizes/Upper": "u",
        "sizes/_under": "u",
        "sizes/.dot": "d",
        "sizes/10": "n",
        "sizes/2": "n",
        "sizes/sub/x": "x",
    }
    for path, content in files.items():
        target = base / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode())
    (base / "binary.bin").write_bytes(bytes(range(256)) * 4)
    (base / "broken.txt").write_bytes(b"ok\n\xff\xfe\xc3(\xe2\x82 end\n")
    (base / "pixel.png").write_bytes(base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="))
    (base / "sound.mp3").write_bytes(b"ID3\x03\x00\x00\x00\x00\x00\x00")
    (base / "picture.SVG").write_bytes(b"<svg/>")
    (base / "emptydir").mkdir()
    (base / "link.txt").symlink_to("hello.txt")
    (base / "linkdir").symlink_to("src")
    (base / "dangling").symlink_to("nowhere")
    (base / "out").symlink_to("/etc/hostname")
    (base / "outdir").symlink_to("/etc")
    (base / "loop").symlink_to("loop")
    os.chmod(base / "code.py", 0o640)
    for path in sorted(base.rglob("*")):
        os.utime(path, (1_700_000_000, 1_700_000_000), follow_symlinks=False)
    os.utime(base, (1_700_000_000, 1_700_000_000))


def calls():
    """Tool, arguments, and the key of the reason where the replies differ."""
    for tool in ("read_file", "read_text_file"):
        yield tool, {"path": "BASE/hello.txt"}
        yield tool, {"path": "hello.txt"}
        yield tool, {"path": "./src/../hello.txt"}
        yield tool, {"path": "BASE//src///main.rs"}
        yield tool, {"path": "BASE/missing.txt"}
        yield tool, {"path": "BASE/missing/deeper.txt"}
        yield tool, {"path": "BASE/src"}
        yield tool, {"path": "/etc/passwd"}
        yield tool, {"path": "../../../../../../etc/passwd"}
        yield tool, {"path": "BASE/out"}, "link"
        yield tool, {"path": "BASE/link.txt"}
        yield tool, {"path": "BASE/lines.txt", "head": 3}
        yield tool, {"path": "BASE/lines.txt", "tail": 3}
    read = "read_text_file"
    for name in ("empty.txt", "no-newline.txt", "crlf.txt", "umlaut.txt", "bom.txt", "broken.txt", "binary.bin", ".hidden"):
        yield read, {"path": f"BASE/{name}"}
        for count in (1, 2, 5):
            yield read, {"path": f"BASE/{name}", "head": count}
            yield read, {"path": f"BASE/{name}", "tail": count}
    for count in (0, 1, 2, 99, 100, 101, 1000):
        yield read, {"path": "lines.txt", "head": count}
        yield read, {"path": "lines.txt", "tail": count}
    yield read, {"path": "lines.txt", "head": -1}
    yield read, {"path": "lines.txt", "tail": -1}
    yield read, {"path": "lines.txt", "head": 2.5}
    yield read, {"path": "lines.txt", "tail": 2.5}, "part"
    yield read, {"path": "lines.txt", "head": 1, "tail": 1}
    yield read, {"path": "lines.txt", "head": 0, "tail": 1}
    yield read, {"path": "missing.txt", "tail": 1}, "tail"
    yield read, {"path": "missing.txt", "head": 1}
    yield read, {"path": "hello.txt", "extra": True}
    yield read, {}, "arguments"
    yield read, {"path": 7}, "arguments"
    yield read, {"path": "lines.txt", "head": "2"}, "number"
    yield read, {"path": "lines.txt", "head": None}, "null"
    yield read, {"path": "C:\\x"}
    yield read, {"path": "c:/x"}
    yield read, {"path": "a\u0000b"}, "control"
    yield read, {"path": "BASE/hello.txt/x"}
    yield read, {"path": "~/x"}
    yield read, {"path": "BASE/outdir/passwd"}, "link"
    yield read, {"path": "BASE/dangling"}, "dangling"
    yield read, {"path": "BASE/loop"}
    yield read, {"path": "BASE/linkdir/main.rs"}
    yield read, {"path": ""}
    yield read, {"path": "BASE"}
    yield read, {"path": "BASEx/hello.txt"}
    yield read, {"path": "x" * 300}
    for name in ("pixel.png", "sound.mp3", "picture.SVG", "binary.bin", "with space/a b.txt", "docs/[draft].md", "docs/a+b.md", "empty.txt"):
        yield "read_media_file", {"path": f"BASE/{name}"}
    yield "read_media_file", {"path": "missing.png"}
    yield "read_media_file", {"path": "src"}
    yield "read_media_file", {"path": "/etc/passwd"}
    yield "read_media_file", {"path": "link.txt"}

    many = "read_multiple_files"
    yield many, {"paths": ["hello.txt", "BASE/src/main.rs"]}
    yield many, {"paths": ["hello.txt", "missing.txt", "empty.txt"]}
    yield many, {"paths": ["/etc/passwd", "no-newline.txt"]}
    yield many, {"paths": ["src"]}
    yield many, {"paths": ["C:\\x"]}
    yield many, {"paths": []}, "arguments"
    yield many, {"paths": "hello.txt"}, "arguments"
    yield many, {}, "arguments"
    yield many, {"paths": ["umlaut.txt"] * 5}

    for path in (".", "BASE", "src", "src/deep", "emptydir", "linkdir", ".config", "with space", "docs"):
        yield "list_directory", {"path": path}
    for path in ("missing", "hello.txt", "/", "/etc"):
        yield "list_directory", {"path": path}
    yield "list_directory", {"path": "dangling"}, "dangling"
    yield "list_directory", {"path": "outdir"}, "link"
    yield "list_directory", {"path": "hello.txt/x"}, "below a file"
    yield "list_directory", {}, "arguments"

    for path in ("sizes", "src", "emptydir", "docs"):
        yield "list_directory_with_sizes", {"path": path}
        yield "list_directory_with_sizes", {"path": path, "sortBy": "name"}
    yield "list_directory_with_sizes", {"path": "sizes/sub", "sortBy": "size"}
    yield "list_directory_with_sizes", {"path": "src/deep", "sortBy": "size"}
    yield "list_directory_with_sizes", {"path": "sizes", "sortBy": "age"}, "arguments"
    yield "list_directory_with_sizes", {"path": "missing"}
    yield "list_directory_with_sizes", {"path": "hello.txt"}

    for path in (".", "src", "emptydir", "linkdir"):
        yield "directory_tree", {"path": path}
    for patterns in (["node_modules"], ["*.rs"], ["**/*.rs"], ["deep"], ["src/deep"], ["**/deep/**"], [".*"], ["*"], ["{src,docs}"], ["missing"], [""], ["#x"], ["!src"]):
        yield "directory_tree", {"path": ".", "excludePatterns": patterns}
    yield "directory_tree", {"path": "src", "excludePatterns": ["er", "*.md"]}
    yield "directory_tree", {"path": "missing"}
    yield "directory_tree", {"path": "hello.txt"}
    yield "directory_tree", {"path": "/etc"}

    patterns = (
        "*", "**", "*.txt", "**/*.rs", "**/*.{rs,md}", "src/*", "src/**", "src/**/*", "**/deep", "**/[a-l]*.rs", "?????.txt",
        ".hidden", "**/.*", "*.TXT", "**/*+*", "**/*\\[*", "docs/[[]draft].md", "**/@(main|leaf).rs", "**/+(l|i|b).rs",
        "!*", "!**/*.txt", "#comment", "", "src/", "/src", "./src/*", "src//main.rs", "**/**/leaf.rs", "nothing*", "{1..3}",
        "sizes/{1..10}", "**/*(k|i|l|o)", "sizes/[!a-z]*", "sizes/[^_]*", "*/*/*", "**/a b.txt", "link*", "dangling", "out*",
    )
    for pattern in patterns:
        yield "search_files", {"path": "BASE", "pattern": pattern}
    yield "search_files", {"path": "src", "pattern": "**/*.rs", "excludePatterns": ["deep/**"]}
    yield "search_files", {"path": "src", "pattern": "**/*.rs", "excludePatterns": ["deep"]}
    yield "search_files", {"path": ".", "pattern": "**", "excludePatterns": ["**/*.txt", "node_modules", "sizes/**"]}
    yield "search_files", {"path": ".", "pattern": "**/!(main).rs"}, "negated"
    yield "search_files", {"path": "missing", "pattern": "*"}
    yield "search_files", {"path": "hello.txt", "pattern": "*"}
    yield "search_files", {"path": "linkdir", "pattern": "*"}
    yield "search_files", {"path": "/etc", "pattern": "*"}
    yield "search_files", {"path": "."}, "arguments"

    for path in ("hello.txt", "empty.txt", "code.py", "src", "link.txt", "linkdir", ".", "sizes/mega"):
        yield "get_file_info", {"path": path}
    for path in ("missing", "/etc/passwd", "hello.txt/x"):
        yield "get_file_info", {"path": path}
    yield "get_file_info", {"path": "dangling"}, "dangling"
    yield "get_file_info", {"path": "out"}, "link"

    yield "list_allowed_directories", {}
    yield "list_allowed_directories", {"extra": 1}
    yield "no_such_tool", {}, "unknown"

    # From here on things change.
    write = "write_file"
    yield write, {"path": "BASE/new.txt", "content": "new\n"}
    yield read, {"path": "new.txt"}
    yield write, {"path": "new.txt", "content": ""}
    yield read, {"path": "new.txt"}
    yield write, {"path": "hello.txt", "content": "Größe\r\n日本"}
    yield read, {"path": "hello.txt"}
    yield write, {"path": "missing/new.txt", "content": "x"}
    yield write, {"path": "src", "content": "x"}, "directory"
    yield write, {"path": "/etc/mcp-new", "content": "x"}
    yield write, {"path": "outdir/mcp-new", "content": "x"}, "link"
    yield write, {"path": "link.txt", "content": "through the link\n"}
    yield read, {"path": "hello.txt"}
    yield "get_file_info", {"path": "code.py"}
    yield write, {"path": "code.py", "content": "def one():\n    return 1\n\n\ndef two():\n    if True:\n        return 2\n    return 3\n"}
    yield write, {"path": "x"}, "arguments"
    yield write, {"content": "x"}, "arguments"

    edit = "edit_file"

    def edits(*pairs):
        return [{"oldText": old, "newText": new} for old, new in pairs]

    code = "code.py"
    yield edit, {"path": code, "edits": edits(("return 1", "return 10")), "dryRun": True}
    yield read, {"path": code}
    yield edit, {"path": code, "edits": edits(("return 1", "return 10"))}
    yield read, {"path": code}
    yield edit, {"path": code, "edits": edits(("return 10", "return 1"), ("return 3", "return 30"))}
    yield edit, {"path": code, "edits": edits(("nowhere", "x"))}
    yield edit, {"path": code, "edits": edits(("return 1", "return 5"), ("nowhere", "x"))}
    yield read, {"path": code}
    yield edit, {"path": code, "edits": edits(("if True:\nreturn 2", "if False:\n    return 20\nelse:\n    return 21"))}
    yield read, {"path": code}
    yield edit, {"path": code, "edits": edits(("  def one():  \n return 1", "def uno():\n return 11"))}
    yield read, {"path": code}
    yield edit, {"path": code, "edits": edits(("return 30\n", "return 30\n\n\ndef three():\n    pass\n"))}
    yield edit, {"path": code, "edits": edits(("\n\n\ndef three", "\n\ndef three"))}
    yield edit, {"path": code, "edits": edits(("def three():\n    pass\n", ""))}
    yield edit, {"path": code, "edits": []}
    yield edit, {"path": code, "edits": edits(("def uno", "def uno"))}
    yield edit, {"path": code, "edits": edits(("$&", "x"))}
    yield edit, {"path": code, "edits": edits(("def uno", "def $& $1 $$"))}
    yield read, {"path": code}
    yield edit, {"path": "lines.txt", "edits": edits(("line 10\n", "ten\n"), ("line 90\n", "ninety\n"), ("line 95\n", ""))}
    yield edit, {"path": "lines.txt", "edits": edits(("line 20\nline 21\nline 22", "twenty"))}
    yield edit, {"path": "lines.txt", "edits": edits(("ten\n", "line 10\nline 10b\n"), ("line 15\n", "x\n"))}
    yield read, {"path": "lines.txt"}
    yield edit, {"path": "no-newline.txt", "edits": edits(("three", "3"))}
    yield edit, {"path": "no-newline.txt", "edits": edits(("one", "1"))}
    yield edit, {"path": "no-newline.txt", "edits": edits(("3", "3\n"))}
    yield edit, {"path": "fences.md", "edits": edits(("code", "more"))}
    yield edit, {"path": "blocks.txt", "edits": edits(("b\nc\n", "b\na\nb\nc\n"))}
    yield edit, {"path": "blocks.txt", "edits": edits(("c\n", ""))}
    yield edit, {"path": "umlaut.txt", "edits": edits(("Größe", "größer"))}
    yield edit, {"path": "bom.txt", "edits": edits(("with", "without"))}
    yield edit, {"path": "empty.txt", "edits": edits(("x", "y"))}
    yield edit, {"path": "missing.txt", "edits": edits(("x", "y"))}
    yield edit, {"path": "src", "edits": edits(("x", "y"))}
    yield edit, {"path": "/etc/passwd", "edits": edits(("root", "toor"))}
    yield edit, {"path": "twice.txt", "edits": edits(("same", "other"))}, "twice"
    yield edit, {"path": code, "edits": edits(("", "x"))}, "empty"
    yield edit, {"path": "broken.txt", "edits": edits(("ok", "OK"))}, "binary"
    yield edit, {"path": "crlf.txt", "edits": edits(("two", "2"))}
    yield read, {"path": "crlf.txt"}, "crlf"
    yield edit, {"path": code}, "arguments"
    yield edit, {"path": code, "edits": [{"oldText": "x"}]}, "arguments"
    yield edit, {"path": "linkdir/main.rs", "edits": edits(("main", "principal"))}

    make = "create_directory"
    for path in ("made", "made", "BASE/made/more/and/more", "src", ".", "linkdir/inside"):
        yield make, {"path": path}
    yield make, {"path": "hello.txt"}
    yield make, {"path": "hello.txt/x"}
    yield make, {"path": "/etc/mcp-new"}
    yield make, {"path": "outdir/mcp-new"}, "link"
    yield "list_directory", {"path": "made/more"}

    move = "move_file"
    yield move, {"source": "new.txt", "destination": "moved.txt"}
    yield read, {"path": "moved.txt"}
    yield read, {"path": "new.txt"}
    yield move, {"source": "BASE/moved.txt", "destination": "BASE/made/moved.txt"}
    yield move, {"source": "made/moved.txt", "destination": "src"}
    yield move, {"source": "made/moved.txt", "destination": "src/main.rs"}
    yield move, {"source": "missing", "destination": "anywhere"}
    yield move, {"source": "made/moved.txt", "destination": "missing/x"}
    yield move, {"source": "made", "destination": "renamed"}
    yield move, {"source": "renamed", "destination": "renamed/more/inside"}
    yield move, {"source": "hello.txt", "destination": "/etc/mcp-new"}
    yield move, {"source": "/etc/passwd", "destination": "passwd"}
    yield move, {"source": "hello.txt", "destination": "outdir/x"}, "link"
    yield move, {"source": "hello.txt", "destination": "hello.txt"}
    yield move, {"source": "hello.txt"}, "arguments"
    yield "list_directory", {"path": "renamed"}
    yield move, {"source": "link.txt", "destination": "moved-link.txt"}
    yield "list_directory", {"path": "."}, "moved link"


def tidy_schema(schema):
    return {
        "enum" if key == "const" else key: [value] if key == "const" else value
        for key, value in schema.items()
        if key != "$schema"
    }


def compare_tools(ours, theirs) -> list[str]:
    """What differs in the lists of tools. Only what clients look at counts: no $schema, no execution; a constant is an
    enumeration of one."""

    def plain(tool):
        kept = {key: tool[key] for key in ("name", "title", "description", "inputSchema", "outputSchema", "annotations")}
        return json.loads(json.dumps(kept), object_hook=tidy_schema)

    lists = [[plain(tool) for tool in server.request("tools/list", {})["result"]["tools"]] for server in (ours, theirs)]
    if [tool["name"] for tool in lists[0]] != [tool["name"] for tool in lists[1]]:
        return [f"the names of the tools differ: {[[tool['name'] for tool in one] for one in lists]}"]
    return [f"the definitions differ:\n  ours   {one}\n  theirs {other}" for one, other in zip(*lists) if one != other]


def main() -> int:
    binary, reference = sys.argv[1:3]
    home = Path(tempfile.mkdtemp()).resolve()
    trees = [home / "ours" / "tree", home / "them" / "tree"]
    for tree in trees:
        tree.mkdir(parents=True)
        build(tree)
    os.environ["HOME"] = str(home)
    os.environ["TZ"] = "UTC"
    ours = Server([binary, "--toolset", "reference", str(trees[0])], trees[0])
    theirs = Server([reference, str(trees[1])], trees[1])
    wrong = compare_tools(ours, theirs)
    count, same, used = 0, 0, set()
    for tool, arguments, *reason in calls():
        reason = reason[0] if reason and reason[0] else None
        count += 1
        one, other = ours.call(tool, arguments), theirs.call(tool, arguments)
        if one == other and reason is None:
            same += 1
        elif one == other:
            wrong.append(f"{tool} {arguments}: the same, but a difference is listed: {REASONS[reason]}")
        elif reason is None:
            wrong.append(f"{tool} {arguments}\n  ours   {json.dumps(one, ensure_ascii=False)}\n  theirs {json.dumps(other, ensure_ascii=False)}")
        else:
            used.add(reason)
    ours.end()
    theirs.end()
    shutil.rmtree(home)
    wrong += [f"no call shows this difference: {REASONS[reason]}" for reason in sorted(REASONS.keys() - used)]
    for line in wrong:
        print(line)
    print(f"{count} calls: {same} the same, {count - same - len(wrong)} differ as listed, {len(wrong)} wrong")
    return 1 if wrong or count < 200 else 0


sys.exit(main())
