"""The newest Python SDK as an agent with files: asked for them by sampling, in both ways, and handing them over.

usage: guide.py stdio BINARY PROJECT | guide.py http URL
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp.types import CreateMessageResult, TextContent

FILES = {"docs/plan.md": "# Plan\n", "docs/größe.txt": "naïve\n"}


async def answer(context, params) -> CreateMessageResult:
    prompt = params.messages[0].content.text
    # The marker stands in the request's metadata too, but not every SDK hands that on to its callback.
    marker = next(line for line in prompt.splitlines() if line.startswith(("FILE ", "DIRECTORY ")))
    if prompt.startswith("List the directory"):
        text = marker + "\n" + json.dumps([{"name": path.split("/")[1], "type": "file"} for path in FILES])
    else:
        path = json.loads(marker.split(" ", 2)[2])
        text = f"{marker}\n{FILES[path]}" if path in FILES else f'File not found: "{path}"'
    return CreateMessageResult(role="assistant", model="none", content=TextContent(type="text", text=text))


async def use(target, mode: str) -> None:
    async with Client(target, mode=mode, sampling_callback=answer) as client:
        print(client.protocol_version)
        assert len((await client.list_tools()).tools) == 6
        # The SDK checks every reply against the tool's output schema.
        for path, text in FILES.items():
            for source in ["client", "cache"]:
                arguments = {"path": path, "refresh": source == "client"}
                read = await client.call_tool("guide_request_file", arguments)
                data = read.structured_content["data"]
                assert (data["content"], data["source"]) == (text, source), read
        listed = await client.call_tool("guide_request_directory", {"path": "docs", "refresh": True})
        assert listed.structured_content["data"]["file_count"] == 2, listed
        missing = await client.call_tool("guide_request_file", {"path": "docs/none", "refresh": True})
        assert missing.is_error and missing.structured_content["error_type"] == "not_found", missing
        outside = await client.call_tool("guide_request_file", {"path": "../x"})
        assert outside.structured_content["error_type"] == "security", outside
        files = [{"path": f"src/{number}", "content": "x"} for number in range(3)]
        batch = await client.call_tool("guide_cache_file", {"files": files})
        assert batch.structured_content["data"]["file_count"] == 3, batch
        chunk = {"path": "docs/big", "content": "x", "chunk_index": 0, "chunk_count": 2}
        partial = await client.call_tool("guide_read_file", chunk)
        assert partial.structured_content["data"]["complete"] is False, partial
        await client.call_tool("guide_cache_stats", {})


def main() -> None:
    for mode in ["auto", "legacy"]:
        if sys.argv[1] == "stdio":
            arguments = ["--toolset", "guide", "--project-root", sys.argv[3]]
            target = StdioServerParameters(command=sys.argv[2], args=arguments)
        else:
            target = sys.argv[2]
        asyncio.run(asyncio.wait_for(use(target, mode), 60))


main()
