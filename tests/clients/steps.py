"""What every client in Python does here; how it connects and calls is in the script that has its name.

Such a script hands `run` its ways to connect. Each is an async context manager that is given the target (a command with
its arguments, or a URL) and whether a session is wanted, and gives a Connection.

usage of the scripts: SCRIPT stdio BINARY WORKSPACE | SCRIPT http URL | SCRIPT sessions URL
"""

import asyncio
import logging
import os
import sys
from contextlib import AbstractAsyncContextManager
from typing import Any, Callable, NamedTuple
from urllib.parse import urljoin
from urllib.request import urlopen

# How many tools `mcp-filesystem tools` tells, from tests/clients/run.
TOOLS = int(os.environ["TOOLS"])
HELLO = {"root": "workspace", "path": "hello.txt"}
TEXT = "first line\nzweite Größe\n"


class Reply(NamedTuple):
    text: str
    # Not every client shows the structured half of a failed call.
    structured: dict[str, Any] | None
    failed: bool


class Connection:
    # Whether calls share one session, or each has its own.
    shares_a_session = True
    # Whether `call` adds to `progress` what it hears.
    tells_progress = True

    async def tools(self) -> dict[str, dict[str, Any]]:
        """The tools by name, each with the schema of its arguments."""
        raise NotImplementedError

    async def call(self, tool: str, arguments: dict[str, Any], progress: list[float]) -> Reply:
        raise NotImplementedError


Connect = Callable[[list[str] | str, bool], AbstractAsyncContextManager[Connection]]


async def use(connection: Connection) -> None:
    async def call(tool: str, arguments: dict[str, Any]) -> Reply:
        return await connection.call(tool, arguments, [])

    tools = await connection.tools()
    assert len(tools) == TOOLS, sorted(tools)
    assert set(tools["stat_file"]["required"]) == {"path"}, tools["stat_file"]
    assert tools["grep"]["properties"]["pattern"]["type"] == "string", tools["grep"]

    read = await call("read_file", HELLO)
    assert "Hello World" in read.text and not read.failed, read
    assert read.structured["content"] == "Hello World\n", read

    missing = await call("read_file", HELLO | {"path": "helo.txt"})
    assert missing.failed and "did you mean hello.txt" in missing.text, missing
    wrong = await call("read_file", HELLO | {"offset_lines": "many"})
    assert wrong.failed and "offset_lines must be an integer" in wrong.text, wrong

    place = {"root": "workspace", "path": "written/note.txt"}
    written = await call("write_file", place | {"content": TEXT})
    assert written.structured["size"] == len(TEXT.encode()), written
    again = await call("read_file", place)
    assert again.structured["content"] == TEXT, again
    await call("remove_folder", {"root": "workspace", "path": "written"})

    found = await call("grep", {"root": "workspace", "pattern": "W.rld"})
    assert found.structured["matches"][0]["file"] == "hello.txt", found

    if connection.tells_progress:
        steps: list[float] = []
        await connection.call("hash_file", {"root": "workspace", "path": "large", "algorithm": "md5"}, steps)
        assert steps and steps == sorted(set(steps)), steps


def open_sessions(url: str) -> int:
    with urlopen(urljoin(url, "/metrics")) as page:
        lines = page.read().decode().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("mcp_filesystem_sessions "))


async def visit(connect: Connect, target: list[str] | str, sessions: bool) -> None:
    over_http = isinstance(target, str)
    # A client that failed may have left one behind.
    before = open_sessions(target) if over_http else 0
    async with connect(target, sessions) as connection:
        await use(connection)
        if over_http:
            held = open_sessions(target) - before
            assert held == (sessions and connection.shares_a_session), f"{held} sessions"
    if over_http:
        assert open_sessions(target) == before, "the session is still there after the client has gone"


def warnings_from_now_on() -> list[str]:
    """Every log record that is at least a warning, also of loggers that keep theirs to themselves."""
    seen: list[str] = []
    make = logging.getLogRecordFactory()

    def note(*arguments: Any, **named: Any) -> logging.LogRecord:
        record = make(*arguments, **named)
        if record.levelno >= logging.WARNING:
            seen.append(f"{record.name}: {record.getMessage()}")
        return record

    logging.setLogRecordFactory(note)
    return seen


def run(*ways: Connect) -> None:
    kind, *target = sys.argv[1:]
    warnings = warnings_from_now_on()
    for connect in ways:
        place = target if kind == "stdio" else target[0]
        asyncio.run(asyncio.wait_for(visit(connect, place, kind == "sessions"), 60))
    assert not warnings, "the client complains: " + "; ".join(warnings)
