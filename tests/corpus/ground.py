"""The ground a server stands on: a fresh tree of files with fixed contents and times, and its config file."""

import base64
import functools
import json
import os
import shutil
import tempfile

# Every file and directory gets this time, so that it can be told from what a call changed.
FIXED_TIME = 981173106  # 2001-02-03T04:05:06Z

# A picture of one pixel: a file that is not text.
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)

TOKENS = "first-token-of-two\nsecond-token-of-two\n"
STATE_KEY = "the key that seals what clients carry in this corpus\n"


@functools.cache
def numbered_lines(size):
    """Text of exactly this many bytes, in numbered lines."""
    lines = "".join(f"line {number:06}\n" for number in range(1, size // 12 + 2))
    return lines[: size - 1] + "\n"


@functools.cache
def large_files():
    """Files of the first root that take time to write."""
    return {"huge.txt": numbered_lines(1024 * 1024), "too_large.txt": numbered_lines(1024 * 1024 + 12)}


@functools.cache
def workspace_files():
    """The files of the first root, by path."""
    return {
        "hello.txt": "Hello World\n",
        "empty.txt": "",
        "no_newline.txt": "one\ntwo",
        "crlf.txt": "one\r\ntwo\r\nthree\r\n",
        "bom.txt": "\ufeffmarked\n",
        "twice.txt": "same\nsame\n",
        "größe 漢字 🦀.txt": "naïve 漢字 🦀\ncafé\n",
        "quote\"back\\slash.txt": "odd name\n",
        "binary.bin": bytes(range(256)),
        "pixel.png": PIXEL,
        "invalid.txt": b"fine\n\xff\xfe not UTF-8\n",
        "large.txt": numbered_lines(64 * 1024),
        "long_line.txt": "x" * 5000 + "\nTODO behind a long line\n",
        ".hidden": "hidden\n",
        ".gitignore": "ignored/\n*.log\n",
        "ignored/secret.rs": "// TODO ignored\n",
        "debug.log": "TODO logged\n",
        "src/main.rs": "fn main() {\n    // TODO: say hello\n    greet();\n}\n",
        "src/lib.rs": "pub fn greet() {}\n",
        "src/deep/er/est/leaf.rs": "// leaf TODO\n",
        "docs/plan.md": "# Plan\n\n- first\n- second\n- third\n",
        "docs/notes.md": "alpha\nbeta\ngamma\ndelta\n",
        "data/table.csv": "id,name\n1,one\n2,two\n",
        "script.sh": "#!/bin/sh\necho hi\n",
    }


def workspace_links():
    """The links of the first root, by path."""
    return {
        "link_file": "hello.txt",
        "link_dir": "src",
        "link_out": "../outside.txt",
        "link_dangling": "nowhere",
        "link_loop": "link_loop",
    }


class Ground:
    """A directory with everything one server process needs. It is removed at the end of its block."""

    def __init__(self, is_large=False):
        self.path = os.path.realpath(tempfile.mkdtemp(prefix="corpus-"))
        self._fill("workspace", workspace_files(), workspace_links())
        self._fill("workspace", large_files() if is_large else {}, {})
        self._fill("second", {"other.txt": "other root\n", "sub/a.txt": "a\n"}, {})
        self._fill("fixed", {"read.txt": "only read\n"}, {})
        self._fill("narrow", {"seen.txt": "seen\n"}, {})
        project = {
            "docs/plan.md": "never opened\n", "src/a.rs": "x\n", "tests/t.rs": "x\n", "secret/key": "x\n",
        }
        self._fill("project", project, {"docs/closed": "../secret", "docs/out": "../../outside.txt"})
        self._fill("empty", {}, {})
        self._fill(".", {"outside.txt": "outside of every root\n", "tokens": TOKENS, "key": STATE_KEY}, {})
        os.chmod(self.join("tokens"), 0o600)
        os.chmod(self.join("key"), 0o600)
        os.chmod(self.join("workspace/script.sh"), 0o755)
        os.chmod(self.join("workspace/data/table.csv"), 0o600)
        self._settle()

    def join(self, path):
        """The host path of something in it."""
        return os.path.join(self.path, path)

    def _fill(self, directory, files, links):
        os.makedirs(self.join(directory), exist_ok=True)
        for path, content in files.items():
            path = self.join(os.path.join(directory, path))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content if isinstance(content, bytes) else content.encode())
        for path, target in links.items():
            os.symlink(target, self.join(os.path.join(directory, path)))

    def sparse(self, path, size):
        """Adds a file that has a size and no content on disk."""
        with open(self.join(path), "wb") as file:
            file.truncate(size)

    def _settle(self):
        """Gives everything its fixed time and mode, children before parents."""
        for directory, names, files in os.walk(self.path, topdown=False):
            for name in files + names:
                path = os.path.join(directory, name)
                if not os.path.islink(path) and os.stat(path).st_mode & 0o777 not in (0o600, 0o755):
                    os.chmod(path, 0o755 if os.path.isdir(path) else 0o644)
                os.utime(path, (FIXED_TIME, FIXED_TIME), follow_symlinks=False)

    def config(self, **keys):
        """Writes a config file with the usual roots and these further keys. JSON is YAML too."""
        roots = [
            {"name": "workspace", "path": self.join("workspace"), "allowed_tools": ["*"]},
            {"name": "second", "path": self.join("second"), "allowed_tools": ["*"]},
            {"name": "fixed", "path": self.join("fixed"), "allowed_tools": ["*"], "read_only": True},
            {"name": "narrow", "path": self.join("narrow"), "allowed_tools": ["list_folder", "read_file", "list"]},
        ]
        config = {
            "host": "127.0.0.1", "port": 0, "durability": "fast", "roots": roots,
            "guide": {"project_root": self.join("project")},
        }
        for key, value in keys.items():
            config[key] = {**config[key], **value} if isinstance(config.get(key), dict) else value
        with open(self.join("config.yaml"), "w", encoding="utf-8") as file:
            json.dump(config, file, indent=1)
        return self.join("config.yaml")

    def close(self):
        """Removes it."""
        shutil.rmtree(self.path, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
