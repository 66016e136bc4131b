"""Every tool of every set: its arguments by kind, a call that works, and further calls worth a look."""

from dataclasses import dataclass, field

LONG_NAME = "n" * 300
LONG_PATH = "/".join(["directory"] * 500)

# Values of a wrong type or an odd size, by the kind of argument. Each has a short name.
ODDITIES = {
    "root": {"null": None, "number": 7, "unknown": "nonexistent", "unicode": "Wurzel-ü"},
    "path": {"null": None, "number": 7, "empty": ""},
    "text": {"null": None, "number": 1.5, "empty": ""},
    "pattern": {"null": None, "number": 5, "unclosed": "["},
    "integer": {"null": None, "text": "7", "fraction": 1.5, "negative": -1, "beyond": 10**30},
    "number": {"null": None, "text": "7", "negative": -1.5, "huge": 1e300},
    "boolean": {"null": None, "text": "true"},
    "word": {"null": None, "other": "something else", "number": 1},
    "list": {"null": None, "empty": [], "object": {}, "numbers": [1, 2]},
    "object": {"null": None, "empty": {}, "list": [], "unknown": {"colour": "red"}},
}

# Paths that lead somewhere else than to a plain file.
PATHS = {
    "dot": ".", "outside": "../outside.txt", "absolute": "/etc/passwd", "missing": "missing.txt", "file": "hello.txt",
    "directory": "src", "through_link": "link_dir/main.rs", "link_out": "link_out", "unicode": "größe 漢字 🦀.txt",
    "nul": "a\0b",
}

# The same for `guide`, whose files are the agent's.
GUIDE_PATHS = {
    "dot": ".", "outside": "../docs/a", "absolute": "/etc/passwd", "absolute_inside": "/docs/plan.md",
    "not_allowed": "secret/key", "link_closed": "docs/closed/key", "unicode": "docs/größe 漢字", "nul": "docs/a\0b",
    "empty": "", "directory": "docs",
}


@dataclass
class Tool:
    """A tool: the kinds of its arguments, and calls."""

    arguments: dict
    base: dict
    good: list = field(default_factory=list)


W = {"root": "workspace"}
ENTRIES = [
    {"name": "plan.md", "type": "file", "size": 7, "mtime": 20},
    {"name": "sub", "type": "directory", "children": [{"name": "x.rs", "type": "file"}]},
    {"name": "link", "type": "symlink"},
]
PLACE = {"root": "root", "path": "path"}
PAIR = {"source_root": "root", "source_path": "path", "dest_root": "root", "dest_path": "path"}


def pair(source, destination, source_root="workspace", dest_root="workspace"):
    """The arguments of copy and move in `workspace`."""
    return {
        "source_root": source_root, "source_path": source, "dest_root": dest_root, "dest_path": destination,
    }


def edit(old, new):
    """One replacement of `edit_file` in `workspace`."""
    return {"old": old, "new": new}


WORKSPACE = {
    "list_roots": Tool({}, {}, [{"verbose": True}]),
    "list_folder": Tool(PLACE, {**W, "path": "src"}, [
        {**W, "path": "."}, {**W, "path": "docs"}, {"root": "second", "path": "sub"}, {"root": "narrow", "path": "."},
        {"root": "fixed", "path": ""},
    ]),
    "read_file": Tool(
        {
            **PLACE, "offset_bytes": "integer", "limit_bytes": "integer", "offset_lines": "integer",
            "limit_lines": "integer", "line_numbers": "boolean",
        },
        {**W, "path": "docs/notes.md"},
        [
            {**W, "path": "docs/notes.md", "offset_lines": 2}, {**W, "path": "docs/notes.md", "offset_lines": -2},
            {**W, "path": "docs/notes.md", "offset_lines": 2, "limit_lines": 1},
            {**W, "path": "docs/notes.md", "offset_lines": 99}, {**W, "path": "docs/notes.md", "limit_lines": 2},
            {**W, "path": "docs/notes.md", "offset_bytes": 3, "limit_bytes": 5},
            {**W, "path": "docs/notes.md", "offset_bytes": 1, "offset_lines": 1},
            {**W, "path": "docs/notes.md", "line_numbers": False}, {**W, "path": "crlf.txt"}, {**W, "path": "bom.txt"},
            {**W, "path": "no_newline.txt"}, {**W, "path": "invalid.txt"}, {**W, "path": "pixel.png"},
            {**W, "path": "binary.bin", "offset_bytes": 10, "limit_bytes": 20}, {**W, "path": "large.txt"},
            {**W, "path": "large.txt", "offset_lines": 5000, "limit_lines": 3}, {**W, "path": "huge.txt"},
            {**W, "path": "too_large.txt"}, {**W, "path": "too_large.txt", "offset_lines": -1},
            {**W, "path": "long_line.txt", "limit_bytes": 100},
            {**W, "path": "größe 漢字 🦀.txt", "offset_bytes": 3, "limit_bytes": 4},
        ],
    ),
    "write_file": Tool(
        {**PLACE, "content": "text", "mode": "word"}, {**W, "path": "new/written.txt", "content": "text\n"},
        [
            {**W, "path": "hello.txt", "content": "more\n", "mode": "append"},
            {**W, "path": "hello.txt", "content": "x", "mode": "create_only"},
            {**W, "path": "new/only.txt", "content": "x", "mode": "create_only"},
            {**W, "path": "hello.txt", "content": ""},
            {**W, "path": "ünï/漢字.txt", "content": "🦀\u2028"}, {**W, "path": "big.txt", "content": "y" * 65536},
            {"root": "fixed", "path": "x", "content": "x"}, {"root": "narrow", "path": "x", "content": "x"},
        ],
    ),
    "remove_file": Tool(PLACE, {**W, "path": "debug.log"}, [
        {**W, "path": "debug.log"}, {**W, "path": "link_file"}, {**W, "path": "docs"},
        {"root": "fixed", "path": "read.txt"},
    ]),
    "patch_file": Tool(
        {**PLACE, "patch": "text"},
        {**W, "path": "hello.txt", "patch": "@@ -1 +1 @@\n-Hello World\n+Hello Agent\n"},
        [
            {**W, "path": "hello.txt", "patch": "@@ -1 +1 @@\n-Hello World\n+Hello Agent\n"},
            {
                **W, "path": "docs/notes.md",
                "patch": "@@ -1,2 +1,3 @@\n alpha\n+inserted\n beta\n@@ -4 +5 @@\n-delta\n+DELTA\n"
            },
            {**W, "path": "docs/notes.md", "patch": "@@ -9 +9 @@\n-gamma\n+GAMMA\n"},
            {**W, "path": "made.txt", "patch": "@@ -0,0 +1,2 @@\n+one\n+two\n"},
            {**W, "path": "hello.txt", "patch": "no patch"}, {**W, "path": "hello.txt", "patch": "@@ -1 +1 @@\n?bad\n"},
            {**W, "path": "twice.txt", "patch": "--- a\n+++ b\n@@ -2 +2 @@\n-same\n+other\n"},
            {**W, "path": "binary.bin", "patch": "@@ -1 +1 @@\n-a\n+b\n"},
        ],
    ),
    "edit_file": Tool(
        {**PLACE, "edits": "list", "dry_run": "boolean", "if_version": "text"},
        {**W, "path": "docs/plan.md", "edits": [edit("first", "1st")]},
        [
            {**W, "path": "docs/plan.md", "edits": [edit("first", "1st")]},
            {**W, "path": "twice.txt", "edits": [edit("same", "other")]},
            {**W, "path": "twice.txt", "edits": [{**edit("same", "other"), "all": True}]},
            {**W, "path": "docs/notes.md", "edits": [edit("alpha", "A"), edit("beta", "B")], "dry_run": True},
            {**W, "path": "docs/notes.md", "edits": [edit("alpha", "A"), edit("omega", "O")]},
            {**W, "path": "docs/notes.md", "edits": [edit("gamm", "")], "if_version": "hAAAAAAAA"},
            {**W, "edits": [{**edit("two", "2"), "path": "crlf.txt"}, {**edit("one", "1"), "path": "no_newline.txt"}]},
            {**W, "path": "binary.bin", "edits": [edit("a", "b")]}, {"root": "fixed", "path": "read.txt", "edits": []},
            {"root": "fixed", "path": "read.txt", "edits": [edit("only", "x")]},
        ],
    ),
    "compare": Tool(
        {**PLACE, "other": "path", "other_root": "root", "at": "text"},
        {**W, "path": "docs/plan.md", "other": "docs/notes.md"},
        [
            {**W, "path": "src", "other": "docs"}, {**W, "path": "src", "other": "src"},
            {**W, "path": "hello.txt", "other": "other.txt", "other_root": "second"},
            {**W, "path": "hello.txt", "other": "src"}, {**W, "path": "binary.bin", "other": "pixel.png"},
            {**W, "path": "hello.txt", "at": "1"},
        ],
    ),
    "changes": Tool(
        {**PLACE, "since": "text", "client": "text", "limit": "integer", "diff": "boolean"}, W,
        [{**W, "diff": True}, {**W, "limit": 1}, {**W, "path": "hello.txt"}, {**W, "client": "nobody"},
         {**W, "since": "1"}, {"root": "fixed"}],
    ),
    "undo": Tool(
        {"root": "root", "change": "text", "last": "boolean", "path": "path", "to": "text", "dry_run": "boolean"},
        {**W, "change": "1"},
        [{**W, "last": True}, {**W, "path": "hello.txt"}, {**W, "to": "1"}, {**W, "change": "1", "dry_run": True}, W,
         {"root": "fixed", "change": "1"}, {**W, "change": "1", "last": True}],
    ),
    "watch": Tool(
        # Without a bound it would wait.
        {**PLACE, "since": "text"}, {**W, "path": "hello.txt", "timeout_seconds": 0},
        [{**W, "path": "src", "timeout_seconds": 0}, {**W, "path": "hello.txt", "timeout_seconds": 0, "since": "1"},
         {**W, "path": "missing", "timeout_seconds": 0}],
    ),
    "create_folder": Tool(PLACE, {**W, "path": "made/by/call"}, [
        {**W, "path": "made/by/call"}, {**W, "path": "src"}, {"root": "fixed", "path": "x"},
    ]),
    "remove_folder": Tool(PLACE, {**W, "path": "data"}, [
        {**W, "path": "src"}, {**W, "path": "hello.txt"}, {"root": "fixed", "path": "."}, {**W, "path": "link_dir"},
    ]),
    "stat_file": Tool(PLACE, {**W, "path": "hello.txt"}, [
        {**W, "path": "src"}, {**W, "path": "link_file"}, {**W, "path": "link_dangling"},
        {"root": "fixed", "path": "read.txt"},
        {**W, "path": LONG_PATH}, {**W, "path": LONG_NAME},
    ]),
    "hash_file": Tool(
        {**PLACE, "algorithm": "word"}, {**W, "path": "hello.txt", "algorithm": "sha256"},
        [
            {**W, "path": "hello.txt", "algorithm": "md5"}, {**W, "path": "hello.txt", "algorithm": "sha1"},
            {**W, "path": "huge.txt", "algorithm": "sha256"}, {**W, "path": "empty.txt", "algorithm": "md5"},
        ],
    ),
    "permissions_file": Tool(PLACE, {**W, "path": "script.sh"}, [
        {**W, "path": "data/table.csv"}, {**W, "path": "src"}, {**W, "path": "link_file"},
    ]),
    "copy": Tool(PAIR, pair("hello.txt", "copied.txt"), [
        pair("src", "src2"), pair("hello.txt", "docs"), pair("hello.txt", "hello.txt"), pair("src", "src/inside"),
        pair("hello.txt", "from/first.txt", dest_root="second"), pair("hello.txt", "x", dest_root="fixed"),
        pair("read.txt", "read.txt", source_root="fixed"), pair("link_out", "leaked.txt"),
    ]),
    "move": Tool(PAIR, pair("twice.txt", "moved.txt"), [
        pair("moved.txt", "back.txt"), pair("docs", "papers"), pair("hello.txt", "hello.txt", dest_root="second"),
        pair("src", "src/inside"), pair("read.txt", "x", source_root="fixed"), pair("link_file", "link_moved"),
    ]),
    "grep": Tool(
        {"root": "root", "pattern": "pattern", "path": "path", "glob_filter": "pattern", "case_insensitive": "boolean",
         "context_lines": "integer", "max_results": "integer", "timeout_seconds": "integer", "max_depth": "integer",
         "respect_gitignore": "boolean", "output": "word"},
        {**W, "pattern": "TODO"},
        [
            {**W, "pattern": "todo", "case_insensitive": True}, {**W, "pattern": "TODO", "glob_filter": "*.rs"},
            {**W, "pattern": "TODO", "context_lines": 1}, {**W, "pattern": "TODO", "max_results": 1},
            {**W, "pattern": "TODO", "output": "files"}, {**W, "pattern": "TODO", "output": "count"},
            {**W, "pattern": "TODO", "respect_gitignore": True}, {**W, "pattern": "TODO", "max_depth": 1},
            {**W, "pattern": "TODO", "path": "src/main.rs"}, {**W, "pattern": "x+", "path": "long_line.txt"},
            {**W, "pattern": "nothing like this"}, {**W, "pattern": "漢字"}, {**W, "pattern": r"(a)\1"},
            {**W, "pattern": "a" * 5000},
        ],
    ),
    "glob": Tool(
        {"root": "root", "pattern": "pattern", "regex": "pattern", "path": "path", "max_results": "integer",
         "timeout_seconds": "integer", "max_depth": "integer", "type_filter": "word", "respect_gitignore": "boolean"},
        {**W, "pattern": "*.md"},
        [
            {**W, "pattern": "**/*.rs"}, {**W, "regex": r"\.rs$"}, {**W, "pattern": "*", "regex": "x"}, W,
            {**W, "pattern": "**", "type_filter": "directory"}, {**W, "pattern": "*", "type_filter": "symlink"},
            {**W, "pattern": "**/*.rs", "respect_gitignore": True},
            {**W, "pattern": "**/*", "max_depth": 1, "max_results": 3},
            {**W, "pattern": "*.{md,csv}", "path": "docs"}, {**W, "pattern": "/hello.txt"}, {**W, "pattern": "[gh]*"},
        ],
    ),
}

UNDO = Tool(
    {"change": "text", "last": "boolean", "path": "path", "to": "text", "dry_run": "boolean"}, {"change": "1"},
    [{"last": True}, {"path": "hello.txt"}, {"to": "1"}, {"change": "1", "dry_run": True}, {}],
)

FILES = {
    "list": Tool(
        {
            "path": "path", "pattern": "pattern", "recursive": "boolean", "include_hidden": "boolean",
            "metadata": "boolean"
        },
        {"path": "src"},
        [
            {"path": ".", "pattern": "*.txt"}, {"path": ".", "include_hidden": True, "pattern": ".*"},
            {"path": "src", "recursive": True}, {"path": "src", "metadata": False},
            {"path": ".", "pattern": "src/*.rs", "recursive": True, "metadata": False},
        ],
    ),
    "read": Tool(
        {"path": "path", "encoding": "word", "start_line": "integer", "end_line": "integer", "max_size": "integer"},
        {"path": "docs/notes.md"},
        [
            {"path": "docs/notes.md", "start_line": 1, "end_line": 2},
            {"path": "docs/notes.md", "start_line": 3, "end_line": 1},
            {"path": "docs/notes.md", "encoding": "base64"}, {"path": "docs/notes.md", "encoding": "binary"},
            {"path": "pixel.png"}, {"path": "invalid.txt"}, {"path": "large.txt"}, {"path": "huge.txt"},
            {"path": "too_large.txt"}, {"path": "too_large.txt", "max_size": 2000000},
            {"path": "large.txt", "max_size": 100},
            {"path": "large.txt", "start_line": 5000, "end_line": 5001},
        ],
    ),
    "write": Tool(
        {"path": "path", "content": "text", "encoding": "word", "mode": "word", "make_dirs": "boolean"},
        {"path": "written.txt", "content": "text\n"},
        [
            {"path": "no/dirs.txt", "content": "x"}, {"path": "with/dirs.txt", "content": "x", "make_dirs": True},
            {"path": "hello.txt", "content": "x", "mode": "create"},
            {"path": "hello.txt", "content": "x", "mode": "create_new"},
            {"path": "hello.txt", "content": "more", "mode": "append"},
            {"path": "bytes.bin", "content": "AP8B", "encoding": "base64"},
            {"path": "bytes.bin", "content": "not base64!", "encoding": "base64"},
        ],
    ),
    "mkdir": Tool({"path": "path", "recursive": "boolean"}, {"path": "made/deep"}, [
        {"path": "made/deep"}, {"path": "x/y", "recursive": False}, {"path": "src", "recursive": False},
    ]),
    "delete": Tool({"path": "path", "recursive": "boolean", "force": "boolean"}, {"path": "debug.log"}, [
        {"path": "debug.log"}, {"path": "missing", "force": True}, {"path": "src"}, {"path": "src", "recursive": True},
        {"path": "link_dir", "recursive": True}, {"path": ".", "recursive": True},
    ]),
    "copy": Tool(
        {"source": "path", "destination": "path", "overwrite": "boolean", "recursive": "boolean"},
        {"source": "hello.txt", "destination": "copied.txt"},
        [
            {"source": "hello.txt", "destination": "copied.txt"},
            {"source": "hello.txt", "destination": "copied.txt", "overwrite": True},
            {"source": "src", "destination": "src2"}, {"source": "src", "destination": "src3", "recursive": False},
            {"source": "src", "destination": "src/inside"},
        ],
    ),
    "move": Tool(
        {"source": "path", "destination": "path", "overwrite": "boolean"},
        {"source": "twice.txt", "destination": "moved.txt"},
        [
            {"source": "twice.txt", "destination": "again.txt"}, {"source": "moved.txt", "destination": "hello.txt"},
            {"source": "moved.txt", "destination": "hello.txt", "overwrite": True},
            {"source": "docs", "destination": "papers"},
        ],
    ),
    "info": Tool({"path": "path"}, {"path": "hello.txt"}, [
        {"path": "src"}, {"path": "missing"}, {"path": LONG_PATH}, {"path": LONG_NAME}, {"path": "pixel.png"},
        {"path": "script.sh"}, {"path": "link_file"},
    ]),
    "search": Tool(
        {
            "root_path": "path", "pattern": "pattern", "regex": "boolean", "file_pattern": "pattern",
            "recursive": "boolean", "case_sensitive": "boolean", "max_results": "integer", "max_file_size": "integer",
            "context_lines": "integer",
        },
        {"root_path": ".", "pattern": "TODO"},
        [
            {"root_path": ".", "pattern": "to.o", "regex": True}, {"root_path": ".", "pattern": "to.o"},
            {"root_path": ".", "pattern": "todo", "case_sensitive": True},
            {"root_path": "src/main.rs", "pattern": "TODO"},
            {"root_path": ".", "pattern": "TODO", "file_pattern": "*.rs", "context_lines": 1},
            {"root_path": ".", "pattern": "TODO", "recursive": False, "max_results": 1},
            {"root_path": ".", "pattern": "line 000001", "max_file_size": 1000},
        ],
    ),
    "compare": Tool({"path": "path", "other": "path"}, {"path": "docs/plan.md", "other": "docs/notes.md"}, [
        {"path": "src", "other": "docs"}, {"path": "hello.txt", "other": "src"},
    ]),
    "hash": Tool({"path": "path", "algorithm": "word"}, {"path": "hello.txt", "algorithm": "sha256"}, [
        {"path": "hello.txt", "algorithm": "md5"}, {"path": "src", "algorithm": "md5"},
    ]),
    "watch": Tool(
        {"path": "path", "since": "text"}, {"path": "hello.txt", "timeout_seconds": 0},
        [{"path": "src", "timeout_seconds": 0}],
    ),
    "undo": UNDO,
}

MEMORY = {
    "view": Tool({"path": "path"}, {"path": "docs/notes.md"}, [
        {"path": "."}, {"path": "docs/"}, {"path": LONG_PATH}, {"path": LONG_NAME}, {"path": "pixel.png"},
        {"path": "large.txt"}, {"path": "too_large.txt"},
    ]),
    "create": Tool(
        {"path": "path", "content": "text", "encoding": "word"},
        {"path": "new/note.md", "content": "# Note\n", "encoding": "utf-8"},
        [
            {"path": "new/note.md", "content": "again", "encoding": "utf-8"},
            {"path": "bytes.bin", "content": "AP8B", "encoding": "base64"},
            {"path": "bad.bin", "content": "?", "encoding": "base64"},
        ],
    ),
    "str_replace": Tool(
        {"path": "path", "old_str": "text", "new_str": "text"},
        {"path": "docs/notes.md", "old_str": "beta", "new_str": "BETA"},
        [
            {"path": "docs/notes.md", "old_str": "gamma", "new_str": ""},
            {"path": "twice.txt", "old_str": "same", "new_str": "x"},
            {"path": "docs/notes.md", "old_str": "nothing", "new_str": "x"},
            {"path": "binary.bin", "old_str": "a", "new_str": "b"},
        ],
    ),
    "insert": Tool(
        {"path": "path", "insert_line": "integer", "new_str": "text"},
        {"path": "docs/notes.md", "insert_line": 2, "new_str": "new\n"},
        [
            {"path": "docs/notes.md", "insert_line": 99, "new_str": "x"},
            {"path": "hello.txt", "insert_line": 2, "new_str": "end"},
            {"path": "empty.txt", "insert_line": 1, "new_str": "first\n"},
        ],
    ),
    "delete": Tool({"path": "path"}, {"path": "debug.log"}, [{"path": "debug.log"}, {"path": "src"}, {"path": "."}]),
    "rename": Tool({"old_path": "path", "new_path": "path"}, {"old_path": "twice.txt", "new_path": "deep/once.txt"}, [
        {"old_path": "docs", "new_path": "papers"}, {"old_path": "hello.txt", "new_path": "crlf.txt"},
        {"old_path": "src", "new_path": "src/inside"},
    ]),
    "undo": UNDO,
}

EDITS = [{"oldText": "beta", "newText": "BETA"}]
FILTER = {"path": "path", "excludePatterns": "list"}

REFERENCE = {
    "read_file": Tool({"path": "path", "head": "number", "tail": "number"}, {"path": "docs/notes.md"}, [
        {"path": "docs/notes.md", "head": 2}, {"path": "docs/notes.md", "tail": 2},
        {"path": "docs/notes.md", "head": 1, "tail": 1}, {"path": "invalid.txt"}, {"path": "crlf.txt", "tail": 1},
    ]),
    "read_text_file": Tool({"path": "path", "head": "number", "tail": "number"}, {"path": "docs/notes.md"}, [
        {"path": "docs/notes.md", "head": 2}, {"path": "empty.txt", "tail": 2}, {"path": "bom.txt"},
    ]),
    "read_media_file": Tool({"path": "path"}, {"path": "pixel.png"}, [{"path": "binary.bin"}, {"path": "src"}]),
    "read_multiple_files": Tool({"paths": "list"}, {"paths": ["hello.txt", "docs/plan.md"]}, [
        {"paths": ["hello.txt", "missing", "../outside.txt"]},
    ]),
    "write_file": Tool({"path": "path", "content": "text"}, {"path": "written.txt", "content": "text\n"}, [
        {"path": "no/parent.txt", "content": "x"}, {"path": "src", "content": "x"},
    ]),
    "edit_file": Tool(
        {"path": "path", "edits": "list", "dryRun": "boolean"}, {"path": "docs/notes.md", "edits": EDITS},
        [{"path": "docs/notes.md", "edits": EDITS}, {"path": "crlf.txt", "edits": [{"oldText": "two", "newText": "2"}]},
         {"path": "twice.txt", "edits": [{"oldText": "same", "newText": "x"}], "dryRun": True}],
    ),
    "create_directory": Tool({"path": "path"}, {"path": "made/deep"}, [{"path": "src"}, {"path": "hello.txt"}]),
    "list_directory": Tool({"path": "path"}, {"path": "src"}, [{"path": "."}, {"path": "hello.txt"}]),
    "list_directory_with_sizes": Tool({"path": "path", "sortBy": "word"}, {"path": "src"}, [
        {"path": "docs", "sortBy": "size"}, {"path": "docs", "sortBy": "name"},
    ]),
    "directory_tree": Tool(FILTER, {"path": "src"}, [{"path": "src", "excludePatterns": ["deep"]}]),
    "move_file": Tool(
        {"source": "path", "destination": "path"}, {"source": "twice.txt", "destination": "moved.txt"},
        [{"source": "moved.txt", "destination": "hello.txt"}, {"source": "docs", "destination": "papers"}],
    ),
    "search_files": Tool({**FILTER, "pattern": "pattern"}, {"path": ".", "pattern": "**/*.rs"}, [
        {"path": ".", "pattern": "**/*.rs", "excludePatterns": ["ignored/**"]}, {"path": "src", "pattern": "*.rs"},
    ]),
    "get_file_info": Tool({"path": "path"}, {"path": "hello.txt"}, [{"path": "link_file"}]),
    "list_allowed_directories": Tool({}, {}, []),
}

MEMORIES = "/memories/docs/notes.md"

MEMORY_TOOL = {
    "memory": Tool(
        {
            "command": "word", "path": "path", "view_range": "list", "file_text": "text", "old_str": "text",
            "new_str": "text", "insert_line": "integer", "insert_text": "text", "old_path": "path", "new_path": "path",
        },
        {"command": "view", "path": MEMORIES},
        [
            {"command": "view", "path": "/memories"}, {"command": "view", "path": MEMORIES, "view_range": [2, 3]},
            {"command": "create", "path": "/memories/new/note.md", "file_text": "# Note\n"},
            {"command": "str_replace", "path": MEMORIES, "old_str": "beta", "new_str": "BETA"},
            {"command": "str_replace", "path": "/memories/twice.txt", "old_str": "same", "new_str": "x"},
            {"command": "insert", "path": MEMORIES, "insert_line": 1, "insert_text": "new\n"},
            {"command": "rename", "old_path": "/memories/twice.txt", "new_path": "/memories/deep/once.txt"},
            {"command": "delete", "path": "/memories/debug.log"}, {"command": "delete", "path": "/memories"},
            {"command": "create", "path": "/memories/../outside.txt", "file_text": "x"},
        ],
    ),
}

HASH = "bb480f5174f5006c97f20e492a3afd1f335ac4d3c4defe990f47bf8810390794"

GUIDE = {
    "guide_cache_file": Tool(
        {"path": "path", "content": "text", "binary": "boolean", "metadata": "object", "files": "list"},
        {"path": "docs/plan.md", "content": "# Plan\n"},
        [
            {"path": "docs/plan.md", "content": "# Plan\n", "metadata": {"mtime": 5, "encoding": "utf-8", "size": 7}},
            {"path": "docs/plan.md", "content": "x", "metadata": {"size": 99}},
            {"path": "src/b", "content": "AP8B", "binary": True},
            {"path": "src/b", "content": "not base64!", "binary": True}, {"path": "docs/größe", "content": "naïve 🦀"},
            {"files": [{"path": "src/1", "content": "x"}, {"path": "src/2", "content": "y"}]},
            {"files": [{"path": "src/1", "content": "x"}, {"path": "secret/2", "content": "y"}]},
            {"files": [{"path": "src/1"}]}, {"path": "docs/a", "files": []}, {"path": "docs/a"},
            {"path": "docs/large", "content": "z" * 65536}, {},
        ],
    ),
    "guide_list_directory": Tool(
        {"path": "path", "entries": "list", "pattern": "pattern"}, {"path": "docs", "entries": ENTRIES},
        [
            {"path": "docs", "entries": ENTRIES, "pattern": "*.md"},
            {"path": "docs", "entries": [{"name": "../x", "type": "file"}]},
            {"path": "docs", "entries": [{"name": "a", "type": "pipe"}]},
            {"path": "docs", "entries": [{"type": "file"}]},
            {"path": "docs", "entries": [{"name": "a", "type": "file"}, {"name": "a", "type": "file"}]},
            {"path": "docs", "entries": []},
        ],
    ),
    "guide_read_file": Tool(
        {"path": "path", "content": "text", "encoding": "text", "binary": "boolean", "metadata": "object",
         "chunk_index": "integer", "chunk_count": "integer", "chunk_hash": "text", "content_hash": "text"},
        {"path": "docs/plan.md", "content": "# Plan\n"},
        [
            {"path": "docs/big.txt", "content": "first half", "chunk_index": 0, "chunk_count": 2, "chunk_hash": HASH},
            {"path": "docs/big.txt", "content": " and second", "chunk_index": 1, "chunk_count": 2},
            {"path": "docs/big.txt", "content": "x", "chunk_index": 5, "chunk_count": 2},
            {"path": "docs/big.txt", "content": "x", "chunk_index": 0},
            {"path": "docs/h", "content": "first half", "content_hash": HASH},
            {"path": "docs/h", "content": "other", "content_hash": HASH},
            {"path": "docs/h", "content": "x", "chunk_hash": "xyz"},
            {"path": "docs/j", "content": "g2U=", "binary": True, "encoding": "shift_jis"},
            {"path": "docs/j", "content": "x", "encoding": "klingon"},
        ],
    ),
    "guide_request_file": Tool(
        {"path": "path", "encoding": "text", "binary": "boolean", "mtime": "number", "refresh": "boolean"},
        {"path": "docs/plan.md"}, [
            {"path": "docs/none.md"}, {"path": "docs/plan.md", "refresh": True}, {"path": "docs/" + LONG_PATH},
            {"path": "docs/" + LONG_NAME},
        ],
    ),
    "guide_request_directory": Tool(
        {"path": "path", "recursive": "boolean", "pattern": "pattern", "refresh": "boolean"}, {"path": "docs"},
        [{"path": "docs", "recursive": True}, {"path": "src"}, {"path": "docs", "pattern": "["}],
    ),
    "guide_cache_stats": Tool({}, {}, [{"client": 1}]),
}

SETS = {
    "workspace": WORKSPACE, "files": FILES, "memory": MEMORY, "guide": GUIDE, "reference": REFERENCE,
    "memory_tool": MEMORY_TOOL,
}
