#!/usr/bin/env python3
"""Records what the official conformance suite sends, by a proxy between it and a server.

usage: record_conformance.py BINARY FILE COMMAND...

The command is the suite's own (`node …/conformance`); it is run once for each revision that it has requirements for.
Every request is written once, with its method, path, body and the headers that matter.
"""

import json
import socket
import subprocess
import sys
import threading

from wire import Http, readable

REVISIONS = ["2025-11-25", "2026-07-28"]
# Headers of the suite's HTTP library, which say nothing to this server.
UNIMPORTANT = {
    "connection", "content-length", "user-agent", "accept-encoding", "accept-language", "sec-fetch-mode",
    "transfer-encoding", "keep-alive",
}
SUITE_WITHIN = 300


class Recorder:
    """A proxy on a loopback port that takes note of every request."""

    def __init__(self, port):
        self.target = port
        self.requests = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.target))
            threading.Thread(target=self._watch, args=(client, server), daemon=True).start()
            threading.Thread(target=pump, args=(server, client, lambda data: None), daemon=True).start()

    def _watch(self, client, server):
        """Passes a client's bytes on, and takes its requests out of them."""
        buffer = bytearray()

        def take(data):
            buffer.extend(data)
            while (request := first_request(buffer)) is not None:
                self.requests.append(request)

        pump(client, server, take)

    def close(self):
        """Takes no more connections."""
        self.listener.close()


def pump(source, target, look):
    """Passes bytes on until one side hangs up."""
    try:
        while data := source.recv(1 << 16):
            look(data)
            target.sendall(data)
    except OSError:
        pass
    for side in (source, target):
        try:
            side.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def first_request(buffer):
    """Takes the first whole request out of some bytes."""
    head, end, rest = bytes(buffer).partition(b"\r\n\r\n")
    if not end:
        return None
    first, *lines = readable(head).split("\r\n")
    headers = [line.split(": ", 1) for line in lines]
    named = {name.lower(): value for name, value in headers}
    if named.get("transfer-encoding") == "chunked":
        body, length = chunks(rest)
    else:
        length = int(named.get("content-length", 0))
        body = rest[:length]
    if length is None or len(rest) < length:
        return None
    del buffer[: len(head) + len(end) + length]
    method, path, _ = first.split(" ")
    kept = [[name, value] for name, value in headers if name.lower() not in UNIMPORTANT]
    return {"method": method, "path": path, "headers": kept, "body": readable(body)}


def chunks(data):
    """The body in some chunks and how many bytes they take; no number where the last one is missing."""
    body, place = b"", 0
    while True:
        end = data.find(b"\r\n", place)
        if end < 0:
            return body, None
        size = int(data[place:end], 16)
        body += data[end + 2: end + 2 + size]
        place = end + size + 4
        if size == 0:
            return body, place


class Silent:
    """A stage that records nothing."""

    def __init__(self, binary):
        self.binary = binary

    def add(self, name, request, reply):
        """Takes an exchange."""


def main():
    """The command line."""
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    binary, path, *command = sys.argv[1:]
    seen = set()
    with Http(Silent(binary), toolsets=["workspace", "guide"]) as server, open(path, "w", encoding="utf-8") as file:
        for revision in REVISIONS:
            recorder = Recorder(server.port)
            words = [*command, "server", "--url", f"http://127.0.0.1:{recorder.port}/mcp", "--requirements", revision]
            subprocess.run(
                words, timeout=SUITE_WITHIN, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            recorder.close()
            for request in recorder.requests:
                # The replay has another port.
                request["headers"] = [
                    [name, value] for name, value in request["headers"]
                    if not (name.lower() == "host" and value == f"127.0.0.1:{recorder.port}")
                ]
                line = json.dumps({"revision": revision, **request}, separators=(",", ":"))
                line = line.replace(str(recorder.port), "<port>")
                if line not in seen:
                    seen.add(line)
                    file.write(line + "\n")
    print(f"{len(seen)} requests")


if __name__ == "__main__":
    main()
