#!/usr/bin/env python3
"""Reads and writes through file servers while another program swaps a directory for a link that leads out.

    bench/race.py target/release/mcp-filesystem [--reference COMMAND] [--calls N] [--save]

Fails if this server lets anything out. The other servers are only counted. Needs Linux; installs nothing.
"""

import argparse
import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent
INSIDE, SECRET = "inside", "SECRET of the directory outside"
AT_ONCE = 32
# How many seconds one server may take for a thousand reads and writes, for everything at least, and how many to end.
THOUSAND_MAX, RUN_MIN, PATIENCE = 60, 600, 30


def swap_until_told(real: str, link: str) -> None:
    """The attacker: exchanges two names as fast as it can, until its standard input ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
    at_fdcwd, exchange = -100, 2
    print("swapping", flush=True)
    while not stop.is_set():
        for _ in range(100):
            libc.renameat2(at_fdcwd, real.encode(), at_fdcwd, link.encode(), exchange)


class Client:
    """Speaks JSON-RPC with a server by lines, with several calls under way at once."""

    def __init__(self, command: list[str]):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.number = 0
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "race", "version": "1"}}
        self.send("initialize", hello)
        self.reply()
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message: dict) -> None:
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def send(self, method: str, params: dict) -> None:
        self.number += 1
        self.write({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})

    def reply(self) -> str:
        """The next line that answers a request; a hanging server is ended by the alarm of `raced`."""
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit("the server ended")
            if '"id"' in line and '"method"' not in line:
                return line

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=PATIENCE)


def calls(inside: pathlib.Path, count: int):
    """Reads and writes in turn; every write has a name of its own."""
    for turn in range(count):
        yield "read_text_file", {"path": str(inside / "dir/sub/file")}
        yield "write_file", {"path": str(inside / f"dir/sub/written-{turn}"), "content": "written"}


def raced(command: list[str], count: int) -> dict:
    """Makes the calls under attack; counts what led out."""
    signal.alarm(max(RUN_MIN, count * THOUSAND_MAX // 1000))
    with tempfile.TemporaryDirectory() as base:
        base = pathlib.Path(base).resolve()
        inside, outside = base / "inside", base / "outside"
        (inside / "dir/sub").mkdir(parents=True)
        (outside / "sub").mkdir(parents=True)
        (inside / "dir/sub/file").write_text(INSIDE)
        (outside / "sub/file").write_text(SECRET)
        (inside / "swap").symlink_to(outside)
        client = Client([*command, str(inside)])
        attacker = subprocess.Popen([sys.executable, __file__, "--swap", str(inside / "dir"), str(inside / "swap")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        attacker.stdout.readline()
        try:
            figures = {"leaked": 0, "read": 0, "refused": 0}
            waiting = 0
            for tool, arguments in calls(inside, count):
                if waiting == AT_ONCE:
                    judge(client.reply(), figures)
                    waiting -= 1
                client.send("tools/call", {"name": tool, "arguments": arguments})
                waiting += 1
            for _ in range(waiting):
                judge(client.reply(), figures)
        finally:
            attacker.stdin.close()
            attacker.wait(timeout=PATIENCE)
        client.end()
        written = lambda where: sum(name.startswith("written-") for name in os.listdir(where))
        real = inside / "dir" if not (inside / "dir").is_symlink() else inside / "swap"
        return figures | {"escaped": written(outside / "sub"), "written": written(real / "sub")}


def judge(reply: str, figures: dict) -> None:
    figures["leaked"] += SECRET in reply
    figures["read"] += f'"{INSIDE}"' in reply or f"\\t{INSIDE}" in reply
    figures["refused"] += '"isError":true' in reply.replace(" ", "")


def page(rows: list[tuple[str, dict]], count: int) -> str:
    lines = [
        "# A race", "",
        f"`make bench-race` makes {count:,} reads and {count:,} writes below a directory, {AT_ONCE} at once over stdio, while another program",
        "swaps that directory for a link to one outside and back, as fast as it can (`bench/race.py`). A read leaks if the reply has the",
        "content of the file outside; a write escapes if its file is outside afterwards. One run; other runs count differently, but for the zeros.", "",
        "| server | reads that leaked | writes that escaped | writes that stayed inside | calls refused |", "|---|--:|--:|--:|--:|",
    ]
    for name, figures in rows:
        lines.append(f"| {name} | {figures['leaked']:,} | {figures['escaped']:,} | {figures['written']:,} | {figures['refused']:,} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    if sys.argv[1:2] == ["--swap"]:
        return swap_until_told(*sys.argv[2:4])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--reference", help="the program of the reference server")
    parser.add_argument("--calls", type=int, default=20_000, help="how many reads and as many writes")
    parser.add_argument("--save", action="store_true", help="write bench/RACE.md")
    options = parser.parse_args()
    ours = [os.path.abspath(options.binary), "--toolset", "reference"]
    rows = [("mcp-filesystem, `reference`", raced(ours, options.calls))]
    if options.reference:
        rows.append(("reference server 2026.8.31 (npm)", raced([options.reference], options.calls)))
    text = page(rows, options.calls)
    print(text)
    if options.save:
        (ROOT / "bench/RACE.md").write_text(text)
    _, own = rows[0]
    if own["leaked"] or own["escaped"]:
        raise SystemExit("this server let something out")


main()
