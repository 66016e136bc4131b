"""The newest Python SDK with the reference server's entry, and with ours in its place: only the command differs, and every
reply has to be the same.

usage: drop_in.py BINARY REFERENCE"""

import asyncio
import sys
import tempfile
from pathlib import Path

from mcp import Client, StdioServerParameters


def calls(directory: str) -> list[tuple[str, dict]]:
    note = f"{directory}/note.md"
    return [
        ("write_file", {"path": note, "content": "one\r\ntwo\r\n"}),
        ("read_text_file", {"path": note}),
        ("read_text_file", {"path": note, "head": 1}),
        ("list_directory", {"path": directory}),
        ("search_files", {"path": directory, "pattern": "*.md"}),
        ("move_file", {"source": note, "destination": f"{directory}/moved.md"}),
        ("directory_tree", {"path": directory}),
        ("list_allowed_directories", {}),
    ]


async def session(command: str, arguments: list[str], directory: str) -> list:
    """The names of the tools, then what each call answered."""
    async with Client(StdioServerParameters(command=command, args=[*arguments, directory])) as client:
        answers = [sorted(tool.name for tool in (await client.list_tools()).tools)]
        for name, given in calls(directory):
            reply = await client.call_tool(name, given)
            answers.append((name, bool(reply.is_error), [block.text for block in reply.content], reply.structured_content))
        return answers


async def run(command: str, arguments: list[str]) -> list:
    with tempfile.TemporaryDirectory() as directory:
        directory = str(Path(directory).resolve())
        answers = await asyncio.wait_for(session(command, arguments, directory), 60)
        return [repr(answer).replace(directory, "DIRECTORY") for answer in answers]


async def main() -> None:
    ours, theirs = await run(sys.argv[1], ["--toolset", "reference"]), await run(sys.argv[2], [])
    for our, their in zip(ours, theirs, strict=True):
        assert our == their, f"\nours:   {our}\ntheirs: {their}"
    print(f"{len(ours)} replies are the same")


asyncio.run(main())
