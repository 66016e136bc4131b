"""A client that keeps what went over the wire as a model would see it, for counting."""

import json
import subprocess
from pathlib import Path
from typing import Any


class Refused(Exception):
    """A tool's failure: the model reads it and goes on."""


class Client:
    """One server on standard input and output."""

    def __init__(self, command: list[str], name: str):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.last = 0
        self.sent: list[str] = []
        self.text: list[str] = []
        self.shown: list[str] = []
        told = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}
        self.request("initialize", told)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.tools = self.request("tools/list", {})["tools"]

    def write(self, message: dict[str, Any]) -> None:
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.last += 1
        self.write({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"the server ended during {method}")
            message = json.loads(line)
            if message.get("id") == self.last and "method" not in message:
                break
            if "method" in message and "id" in message:
                self.write({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "unknown"}})
        if "error" in message:
            raise Refused(message["error"]["message"])
        return message["result"]

    def call(self, tool: str, **arguments: Any) -> str:
        """Calls a tool and returns the text of its reply."""
        self.sent.append(tool + json.dumps(arguments, ensure_ascii=False))
        try:
            result = self.request("tools/call", {"name": tool, "arguments": arguments})
        except Refused as refused:
            result = {"content": [{"type": "text", "text": str(refused)}], "isError": True}
        text = "\n".join(block.get("text", "") for block in result["content"])
        self.text.append(text)
        structured = result.get("structuredContent")
        # As clients do that pass on one half: the structured one if there is one.
        self.shown.append(text if structured is None else json.dumps(structured, ensure_ascii=False))
        if result.get("isError"):
            raise Refused(text)
        return text

    def end(self) -> None:
        self.process.stdin.close()
        self.process.terminate()
        self.process.wait(timeout=30)


def count(texts: list[str], home: Path) -> list[int]:
    """The o200k tokens of each text, by the tokenizer installed below `home`; long texts are counted in pieces that end with a line."""
    script = (
        "const {countTokens} = require('gpt-tokenizer/encoding/o200k_base');"
        "const pieces = (text) => text.match(/[^]{1,1000000}[^\\n]*\\n?/g) ?? [];"
        "const counted = (text) => pieces(text).reduce((sum, piece) => sum + countTokens(piece), 0);"
        "let all = ''; process.stdin.on('data', (part) => all += part);"
        "process.stdin.on('end', () => console.log(JSON.stringify(JSON.parse(all).map(counted))));"
    )
    run = subprocess.run(["node", "-e", script], cwd=home, input=json.dumps(texts), capture_output=True, text=True, check=True)
    return json.loads(run.stdout)
