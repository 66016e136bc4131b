"""Fifteen tasks as an agent carries them out, with each server's own tools, and how to tell whether each was done right.

A task is a method. It calls tools in the order in which a model would, and returns whether the outcome is right: by the
bytes on disk where something was changed, else by what the replies told.
"""

import re
from pathlib import Path

from client import Client, Refused
import corpus

NEW_FILES = {f"app/docs/page{number}.md": f"# Page {number}\n\nText of page {number}.\n" for number in range(1, 6)}
PARTS = [f"parts/part{number}.txt" for number in range(10)]
CRLF_OLD = "line 90 of the list\nline 91 of the list"
CRLF_NEW = "line 90 of the list\nline 90b of the list\nline 91 of the list"


class NoTool(Exception):
    """The server has no tool for a task."""


class Tasks:
    """What is common to all servers: the directory before, and the judgements."""

    NAMES = [
        "find a definition and its uses", "rename a symbol in 45 places", "an off-by-one in 826 lines",
        "a new parameter and five callers", "a key in a YAML file", "the last errors of a large log",
        "lines in the middle of it", "delete a build directory", "compare two directories of 53 files",
        "edit a CRLF file", "names that are not ASCII", "take back a wrong edit", "the ten largest files",
        "write five new files", "read ten files",
    ]

    def __init__(self, client: Client, base: Path, log_lines: int):
        self.client = client
        self.base = base
        self.lines = log_lines
        self.before = {path: path.read_bytes() for path in base.rglob("*") if path.is_file() and path.stat().st_size < 1 << 20}

    def call(self, tool: str, **arguments) -> str:
        return self.client.call(tool, **arguments)

    def all(self):
        return [self.find, self.rename, self.off_by_one, self.parameter, self.yaml, self.errors, self.middle, self.delete,
                self.compare, self.crlf, self.odd_names, self.take_back, self.largest, self.write_new, self.read_ten]

    def changed_by(self, wanted) -> bool:
        """Whether exactly these files changed since the last look, each by the given function of its bytes."""
        right = True
        for path, old in self.before.items():
            change = wanted.get(path)
            new = path.read_bytes() if path.exists() else None
            right &= new == (change(old) if change else old)
        self.before.update({path: path.read_bytes() for path in wanted if path.exists()})
        return right

    def sources(self, needle: bytes) -> list[Path]:
        return sorted(path for path, old in self.before.items() if path.suffix == ".rs" and needle in old)

    def wanted_lines(self) -> list[str]:
        first = min(1_000_000, self.lines // 2)
        with (self.base / "logs/server.log").open() as log:
            return [line.rstrip("\n") for number, line in enumerate(log, 1) if first <= number < first + 40]

    def found_all(self, text: str) -> bool:
        return "fetch.rs" in text and all(f"module_{number:02}.rs" in text for number in range(corpus.CALLERS))

    def told_errors(self, text: str) -> bool:
        with (self.base / "logs/server.log").open() as log:
            wanted = [line.rstrip("\n") for line in log if " ERROR " in line][-3:]
        return all(line in text for line in wanted)

    def ten_largest(self) -> list[str]:
        files = [path for path in (self.base / "app").rglob("*") if path.is_file()]
        return [path.name for path in sorted(files, key=lambda path: -path.stat().st_size)[:10]]

    def renamed(self) -> bool:
        return self.changed_by({path: lambda old: old.replace(b"JobTable", b"WorkTable") for path in self.sources(b"JobTable")})

    def with_parameter(self) -> bool:
        def definition(old: bytes) -> bytes:
            return old.replace(b"fetch_page(number: u64)", b"fetch_page(number: u64, size: u64)")

        def caller(old: bytes) -> bytes:
            return re.sub(rb"fetch_page\((\d)\)", rb"fetch_page(\1, 10)", old)

        wanted = {path: caller for path in self.sources(b"    fetch_page(")}
        return self.changed_by(wanted | {self.base / "app/src/fetch.rs": definition})

    def off_by_one_mended(self) -> bool:
        mended = lambda old: old.replace(b"at <= items.len()", b"at < items.len()")
        return self.changed_by({self.base / "app/src/window.rs": mended})

    def yaml_changed(self) -> bool:
        return self.changed_by({self.base / "app/config/app.yaml": lambda old: old.replace(b"port: 8080", b"port: 9090")})

    def crlf_edited(self) -> bool:
        old, new = (text.replace("\n", "\r\n").encode() for text in (CRLF_OLD, CRLF_NEW))
        return self.changed_by({self.base / "notes/crlf.txt": lambda before: before.replace(old, new)})

    def states_changed(self) -> bool:
        names = (corpus.COMPOSED, corpus.DECOMPOSED)
        return self.changed_by({self.base / "notes" / name: lambda old: old.replace(b"draft", b"final") for name in names})

    def deleted(self) -> bool:
        gone = not (self.base / "build").exists()
        if gone:
            self.before = {path: old for path, old in self.before.items() if "build" not in path.relative_to(self.base).parts}
        return gone and self.changed_by({})

    def written(self) -> bool:
        return all((self.base / path).read_bytes() == text.encode() for path, text in NEW_FILES.items()) and self.changed_by({})

    def read_all(self, text: str) -> bool:
        return all(line in text for path in PARTS for line in (self.base / path).read_text().splitlines())


class Ours(Tasks):
    """`workspace`, one root."""

    def find(self) -> bool:
        return self.found_all(self.call("grep", pattern=r"\bfetch_page\b", path="app"))

    def rename(self) -> bool:
        files = self.call("grep", pattern="JobTable", path="app", output="files").splitlines()
        files = [line for line in files if line.endswith(".rs")]
        self.call("edit_file", edits=[{"path": path, "old": "JobTable", "new": "WorkTable", "all": True} for path in files])
        return self.renamed()

    def off_by_one(self) -> bool:
        self.call("grep", pattern="while|for ", path="app/src/window.rs", context_lines=2)
        self.call("edit_file", path="app/src/window.rs", edits=[{"old": "at <= items.len()", "new": "at < items.len()"}])
        return self.off_by_one_mended()

    def parameter(self) -> bool:
        found = self.call("grep", pattern=r"fetch_page\(", path="app")
        callers = sorted(set(re.findall(r"app/src/module_\d+\.rs", found)))
        edits = [{"path": "app/src/fetch.rs", "old": "(number: u64)", "new": "(number: u64, size: u64)"}]
        for path in callers:
            number = int(re.search(r"module_(\d+)", path).group(1))
            edits.append({"path": path, "old": f"fetch_page({number})", "new": f"fetch_page({number}, 10)"})
        self.call("edit_file", edits=edits)
        return self.with_parameter()

    def yaml(self) -> bool:
        self.call("read_file", path="app/config/app.yaml")
        self.call("edit_file", path="app/config/app.yaml", edits=[{"old": "port: 8080", "new": "port: 9090"}])
        return self.yaml_changed()

    def errors(self) -> bool:
        return self.told_errors(self.call("grep", pattern=" ERROR ", path="logs/server.log", from_end=True, max_results=10))

    def middle(self) -> bool:
        first = min(1_000_000, self.lines // 2)
        text = self.call("read_file", path="logs/server.log", offset_lines=first, limit_lines=40)
        return all(f"{first + at}\t{line}" in text for at, line in enumerate(self.wanted_lines()))

    def delete(self) -> bool:
        self.call("remove_folder", path="build")
        return self.deleted()

    def compare(self) -> bool:
        text = self.call("compare", path="left", other="right")
        told = [name in text for name in ("item_11.txt", "item_29.txt", "old_item_52.txt", "new_item_52.txt")]
        return all(told) and "item_10.txt" not in text

    def crlf(self) -> bool:
        self.call("grep", pattern="line 9[01]", path="notes/crlf.txt")
        self.call("edit_file", path="notes/crlf.txt", edits=[{"old": CRLF_OLD, "new": CRLF_NEW}])
        return self.crlf_edited()

    def odd_names(self) -> bool:
        self.call("list_folder", path="notes")
        names = (corpus.COMPOSED, corpus.TYPED)
        self.call("edit_file", edits=[{"path": f"notes/{name}", "old": "draft", "new": "final"} for name in names])
        return self.states_changed()

    def take_back(self) -> bool:
        self.call("edit_file", path="app/config/app.yaml", edits=[{"old": "timeout: 30", "new": "timeout: 3"}])
        if any(tool["name"] == "undo" for tool in self.client.tools):
            self.call("undo")
        else:
            self.call("edit_file", path="app/config/app.yaml", edits=[{"old": "timeout: 3", "new": "timeout: 30"}])
        return self.changed_by({})

    def largest(self) -> bool:
        text = self.call("glob", pattern="**/*", path="app", sort="size", max_results=10, type_filter="file")
        return all(name in text for name in self.ten_largest())

    def write_new(self) -> bool:
        self.call("write_file", files=[{"path": path, "content": text} for path, text in NEW_FILES.items()])
        return self.written()

    def read_ten(self) -> bool:
        return self.read_all(self.call("read_file", paths=PARTS))


class Reference(Tasks):
    """The reference server: absolute paths, edits by text, no search in files, no removal, no comparison."""

    reads_many = "read_multiple_files"

    def at(self, path) -> str:
        return str(self.base / path)

    def edit(self, path, *pairs) -> None:
        self.call("edit_file", path=self.at(path), edits=[{"oldText": old, "newText": new} for old, new in pairs])

    def read_many(self, paths) -> str:
        return self.call(self.reads_many, paths=[self.at(path) for path in paths])

    def listed(self, directory: str) -> list[str]:
        text = self.call("list_directory", path=self.at(directory))
        return [f"{directory}/{name}" for name in re.findall(r"\[FILE\] (.+)", text)]

    def find(self) -> bool:
        return self.found_all(self.read_many(self.listed("app/src")))

    def rename(self) -> bool:
        text = self.read_many(self.listed("app/src"))
        for path in self.sources(b"JobTable"):
            lines = [line for line in self.before[path].decode().splitlines() if "JobTable" in line]
            assert all(line in text for line in lines)
            self.edit(path, *[(line, line.replace("JobTable", "WorkTable")) for line in lines])
        return self.renamed()

    def off_by_one(self) -> bool:
        self.call("read_text_file", path=self.at("app/src/window.rs"))
        self.edit("app/src/window.rs", ("at <= items.len()", "at < items.len()"))
        return self.off_by_one_mended()

    def parameter(self) -> bool:
        callers = [f"app/src/module_{number:02}.rs" for number in range(corpus.CALLERS)]
        self.read_many(["app/src/fetch.rs", *callers])
        self.edit("app/src/fetch.rs", ("(number: u64)", "(number: u64, size: u64)"))
        for number, path in enumerate(callers):
            self.edit(path, (f"fetch_page({number})", f"fetch_page({number}, 10)"))
        return self.with_parameter()

    def yaml(self) -> bool:
        self.call("read_text_file", path=self.at("app/config/app.yaml"))
        self.edit("app/config/app.yaml", ("port: 8080", "port: 9090"))
        return self.yaml_changed()

    def errors(self) -> bool:
        return self.told_errors(self.call("read_text_file", path=self.at("logs/server.log"), tail=40))

    def middle(self) -> bool:
        first = min(1_000_000, self.lines // 2)
        # The shortest reply that has the lines: from the first of them to the end, and what is behind the last line end.
        text = self.call("read_text_file", path=self.at("logs/server.log"), tail=self.lines - first + 2)
        return all(line in text for line in self.wanted_lines())

    def delete(self) -> bool:
        raise NoTool("it has no tool that removes")

    def compare(self) -> bool:
        left, right = self.listed("left"), self.listed("right")
        texts = self.read_many(left), self.read_many(right)
        return all(len(text) > 1000 for text in texts)

    def crlf(self) -> bool:
        self.call("read_text_file", path=self.at("notes/crlf.txt"))
        self.edit("notes/crlf.txt", (CRLF_OLD, CRLF_NEW))
        return self.crlf_edited()

    def odd_names(self) -> bool:
        self.listed("notes")
        for name in (corpus.COMPOSED, corpus.TYPED):
            self.edit(f"notes/{name}", ("draft", "final"))
        return self.states_changed()

    def take_back(self) -> bool:
        self.edit("app/config/app.yaml", ("timeout: 30", "timeout: 3"))
        self.edit("app/config/app.yaml", ("timeout: 3", "timeout: 30"))
        return self.changed_by({})

    def largest(self) -> bool:
        text = ""
        for directory in ("app", "app/src", "app/config", "app/assets"):
            text += self.call("list_directory_with_sizes", path=self.at(directory), sortBy="size")
        return all(name in text for name in self.ten_largest())

    def write_new(self) -> bool:
        self.call("create_directory", path=self.at("app/docs"))
        for path, text in NEW_FILES.items():
            self.call("write_file", path=self.at(path), content=text)
        return self.written()

    def read_ten(self) -> bool:
        return self.read_all(self.read_many(PARTS))


class RustFilesystem(Reference):
    """rust-mcp-filesystem: the reference server's tools, with a search in files and reading of lines; no removal."""

    reads_many = "read_multiple_text_files"

    def search(self, directory: str, pattern: str, query: str) -> str:
        return self.call("search_files_content", path=self.at(directory), pattern=pattern, query=query, is_regex=True)

    def find(self) -> bool:
        return self.found_all(self.search("app", "**/*.rs", r"\bfetch_page\b"))

    def rename(self) -> bool:
        text = self.search("app", "**/*.rs", "JobTable")
        for path in self.sources(b"JobTable"):
            assert path.name in text
            lines = [line for line in self.before[path].decode().splitlines() if "JobTable" in line]
            self.edit(path, *[(line, line.replace("JobTable", "WorkTable")) for line in lines])
        return self.renamed()

    def off_by_one(self) -> bool:
        self.search("app/src", "window.rs", "while|for ")
        self.edit("app/src/window.rs", ("at <= items.len()", "at < items.len()"))
        return self.off_by_one_mended()

    def parameter(self) -> bool:
        self.search("app", "**/*.rs", r"fetch_page\(")
        self.edit("app/src/fetch.rs", ("(number: u64)", "(number: u64, size: u64)"))
        for number in range(corpus.CALLERS):
            self.edit(f"app/src/module_{number:02}.rs", (f"fetch_page({number})", f"fetch_page({number}, 10)"))
        return self.with_parameter()

    def errors(self) -> bool:
        return self.told_errors(self.call("tail_file", path=self.at("logs/server.log"), lines=40))

    def middle(self) -> bool:
        first = min(1_000_000, self.lines // 2)
        text = self.call("read_file_lines", path=self.at("logs/server.log"), offset=first - 1, limit=40)
        return all(line in text for line in self.wanted_lines())

    def largest(self) -> bool:
        text = ""
        for directory in ("app", "app/src", "app/config", "app/assets"):
            text += self.call("list_directory_with_sizes", path=self.at(directory))
        return all(name in text for name in self.ten_largest())


def run(tasks: Tasks) -> list[dict]:
    """Carries out every task; a tool's refusal that the script does not expect makes the task wrong."""
    rows = []
    for name, task in zip(Tasks.NAMES, tasks.all()):
        start = len(tasks.client.sent)
        why, has_tool = "", True
        try:
            right = task()
        except Refused as refused:
            right, why = False, "refused: " + shortened(str(refused), tasks.base)
        except NoTool as none:
            right, why, has_tool = False, str(none), False
        if not right:
            why = why or "what is there afterwards, or what was told, is not what was asked for"
            # The next task is judged against what is there now.
            tasks.before = {path: path.read_bytes() for path in tasks.before if path.exists()}
        rows.append({"task": name, "right": right, "why": why, "has_tool": has_tool, "calls": slice(start, len(tasks.client.sent))})
    return rows


def shortened(message: str, base: Path) -> str:
    """The first line of a message, without the directory that the corpus happens to be in."""
    return message.splitlines()[0].replace(str(base), "…")[:160]
