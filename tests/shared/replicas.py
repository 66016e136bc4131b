"""Servers on one directory, and what they lose: the changes of many clients through several replicas."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time


def end(wrong, left_out):
    """Ends the program: with 1 if something is wrong, with 2 if something was not tried, unless ALLOW_LEFT_OUT=1 allows that."""
    if left_out:
        print(f"left out: {', '.join(left_out)}", flush=True)
    if wrong:
        sys.exit(f"failed: {', '.join(wrong)}")
    if left_out and os.environ.get("ALLOW_LEFT_OUT") != "1":
        sys.exit(2)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Replica:
    """One server. `roots` are pairs of a name and a path; `history` adds to how that of the first is kept."""

    def __init__(self, program, roots, state_dir=None, quota=None, port=None, timeout=30, history=None):
        self.program = program
        self.port = port or free_port()
        entries = [{"name": name, "path": path, "allowed_tools": ["*"]} for name, path in roots]
        # Calls of one client go through all replicas, each by another connection.
        entries[0]["history"] = {"undo_any": True, **(history or {})}
        if quota:
            entries[0]["quota"] = {"max_bytes": quota}
        config = {
            "host": "127.0.0.1",
            "port": self.port,
            "toolsets": ["workspace", "memory"],
            "roots": entries,
            "durability": "fsync",
            "limits": {"request_timeout": timeout},
            "log": {"level": "error"},
        }
        if state_dir:
            config["cluster"] = {"state_dir": state_dir}
        self.directory = tempfile.TemporaryDirectory(prefix="replica-")
        self.config = os.path.join(self.directory.name, "config.yaml")
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(config, file)
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [self.program, "--config", self.config], stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
        for _ in range(600):
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("the server does not start")

    def stop(self, how=signal.SIGTERM):
        """Ends the server and tells how long that took."""
        begun = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait(timeout=60)
        return time.monotonic() - begun


def call(port, tool, arguments, endpoint="/mcp", timeout=60, headers=()):
    """Calls a tool once; tells the HTTP status and whether the tool succeeded."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request(
            "POST",
            endpoint,
            json.dumps(message),
            {
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2025-11-25",
                **dict(headers),
            },
        )
        response = connection.getresponse()
        body = response.read().decode()
        if response.status != 200:
            return response.status, False, body
        return 200, not json.loads(body)["result"].get("isError", False), body
    finally:
        connection.close()


def change(kind, number, path="shared.txt"):
    """One change of the shared file, by one of the tools that change a part of it, and what it leaves there."""
    old, new = f"slot {number}.", f"done {number}."
    if kind == "edit_file":
        arguments = {"root": "main", "edits": [{"path": path, "old": old, "new": new}]}
        return "edit_file", arguments, "/mcp", new
    if kind == "patch_file":
        patch = f"@@ -{number + 1} +{number + 1} @@\n-{old}\n+{new}\n"
        return "patch_file", {"root": "main", "path": path, "patch": patch}, "/mcp", new
    if kind == "str_replace":
        return "str_replace", {"path": path, "old_str": old, "new_str": new}, "/mcp/memory", new
    arguments = {"root": "main", "path": path, "content": new + "\n", "mode": "append"}
    return "write_file", arguments, "/mcp", new


def in_parallel(count, work, threads=30):
    """Runs work(0), work(1), … on some threads and returns what came of each."""
    results = [None] * count
    numbers = iter(range(count))
    lock = threading.Lock()

    def run():
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            try:
                results[number] = work(number)
            except (OSError, http.client.HTTPException) as error:
                results[number] = error

    running = [threading.Thread(target=run) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return results


def lost_changes(replicas, look, kind, count=300):
    """Makes `count` changes of one file through all replicas; tells how many were confirmed and how many of those are lost."""
    with open(os.path.join(look, "shared.txt"), "w", encoding="utf-8") as file:
        file.write("".join(f"slot {number}.\n" for number in range(count)))

    def one(number):
        tool, arguments, endpoint, leaves = change(kind, number)
        status, done, _ = call(replicas[number % len(replicas)].port, tool, arguments, endpoint)
        return leaves if status == 200 and done else None

    confirmed = [leaves for leaves in in_parallel(count, one, threads=count) if isinstance(leaves, str)]
    with open(os.path.join(look, "shared.txt"), encoding="utf-8") as file:
        text = file.read()
    lost = [leaves for leaves in confirmed if leaves not in text]
    return len(confirmed), len(lost)


def quota_held(replicas, look, limit):
    """Fills a quota through all replicas at once and tells what the directory holds then."""

    def one(number):
        arguments = {"root": "main", "path": f"quota/{number}", "content": "x" * 20_000}
        return call(replicas[number % len(replicas)].port, "write_file", arguments)[1]

    tried = int(limit / 20_000 * 2.5)
    in_parallel(tried, one)
    # A call that fails gives its room back after others were refused; now nobody is under way, and all room has to be had.
    for number in range(6):
        # Right after a refusal nothing is counted anew.
        time.sleep(1.1)
        one(tried + number)
    total = 0
    for directory, directories, files in os.walk(look):
        if ".mcp-filesystem" in directories:
            directories.remove(".mcp-filesystem")
        total += sum(os.path.getsize(os.path.join(directory, name)) for name in files)
    return total
