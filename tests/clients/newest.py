"""The newest Python SDK: lists the tools and calls three of them."""

import asyncio
import os
import sys

from mcp import Client, StdioServerParameters

# How many tools `mcp-filesystem tools` tells, from tests/clients/run.
TOOLS = int(os.environ["TOOLS"])


async def use(target) -> None:
    async with Client(target) as client:
        tools = (await client.list_tools()).tools
        assert len(tools) == TOOLS, [tool.name for tool in tools]
        roots = await client.call_tool("list_roots", {})
        assert roots.structured_content["roots"][0]["name"] == "workspace", roots
        read = await client.call_tool("read_file", {"root": "workspace", "path": "hello.txt"})
        assert read.structured_content["content"] == "Hello World\n", read
        missing = await client.call_tool("read_file", {"root": "workspace", "path": "helo.txt"})
        assert missing.is_error and "hello.txt" in missing.content[0].text, missing
        print(client.protocol_version)
        assert client.protocol_version == "2026-07-28", client.protocol_version


def main() -> None:
    if sys.argv[1] == "stdio":
        target = StdioServerParameters(command=sys.argv[2], args=[sys.argv[3]])
    else:
        target = sys.argv[2]
    asyncio.run(asyncio.wait_for(use(target), 60))


main()
