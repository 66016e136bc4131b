#!/usr/bin/env python3
"""The programs of docs/clients.md that pass calls of the memory tool on, run against a stub of the Messages API on loopback.

usage: memory_forwarded.py python|typescript BINARY NODE_HOME NODE
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/clients.md"
# What the model wants, one after the other, and what it has to be told.
STEPS = [
    ({"command": "create", "path": "/memories/me.md", "file_text": "likes coffee\n"}, "File created successfully at: /memories/me.md", False),
    ({"command": "view", "path": "/memories/me.md"}, "Here's the content of /memories/me.md with line numbers:\n     1\tlikes coffee", False),
    ({"command": "view", "path": "/memories/none"}, "The path /memories/none does not exist. Please provide a valid path.", True),
]


class Stub(BaseHTTPRequestHandler):
    heard: list = []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        step = len(Stub.heard)
        Stub.heard.append(body)
        if step < len(STEPS):
            content = [{"type": "tool_use", "id": f"use_{step}", "name": "memory", "input": STEPS[step][0]}]
        else:
            content = [{"type": "text", "text": "I remember that you like coffee."}]
        reason = "tool_use" if step < len(STEPS) else "end_turn"
        usage = {"input_tokens": 1, "output_tokens": 1}
        reply = {"id": "msg", "type": "message", "role": "assistant", "model": "stub", "content": content, "stop_reason": reason,
                 "stop_sequence": None, "usage": usage}
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def program(language: str, binary: str, store: str) -> str:
    """The block of the document, with this machine's paths."""
    text = DOCUMENT.read_text().split("## Anthropic's memory tool")[1]
    block = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL).group(1)
    return block.replace("mcp-filesystem", binary).replace("/home/me/memory", store)


def main() -> int:
    language, binary, node_home, node = sys.argv[1:5]
    server = HTTPServer(("127.0.0.1", 0), Stub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = os.environ | {
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_port}", "ANTHROPIC_API_KEY": "none", "NO_PROXY": "127.0.0.1"}
    with tempfile.TemporaryDirectory() as store, tempfile.TemporaryDirectory(dir=node_home) as place:
        # Beside its modules, so that they are found.
        file = Path(place) / ("program.py" if language == "python" else "program.mjs")
        file.write_text(program(language, binary, store))
        command = [sys.executable if language == "python" else node, str(file)]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        print(ended.stdout, ended.stderr)
        assert ended.returncode == 0, ended.returncode
        assert ended.stdout.strip().endswith("I remember that you like coffee."), ended.stdout
        assert (Path(store) / "me.md").read_text() == "likes coffee\n"
    server.shutdown()
    assert len(Stub.heard) == len(STEPS) + 1, len(Stub.heard)
    assert Stub.heard[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}], Stub.heard[0]["tools"]
    for number, (_, text, failed) in enumerate(STEPS):
        result = Stub.heard[number + 1]["messages"][-1]["content"][0]
        assert result["tool_use_id"] == f"use_{number}", result
        assert result["content"] == [{"type": "text", "text": text}], result
        assert result["is_error"] is failed, result
    return 0


sys.exit(main())
