"""A Python SDK of an older revision: lists the tools and calls three of them."""

import asyncio
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

# How many tools `mcp-filesystem tools` tells, from tests/clients/run.
TOOLS = int(os.environ["TOOLS"])


async def use(session: ClientSession) -> None:
    started = await session.initialize()
    print(started.protocolVersion)
    assert started.protocolVersion == "2025-03-26", started.protocolVersion
    tools = (await session.list_tools()).tools
    assert len(tools) == TOOLS, [tool.name for tool in tools]
    roots = await session.call_tool("list_roots", {})
    assert roots.content[0].text.startswith("workspace: "), roots
    read = await session.call_tool("read_file", {"root": "workspace", "path": "hello.txt"})
    assert "Hello World" in read.content[0].text, read
    missing = await session.call_tool("read_file", {"root": "workspace", "path": "helo.txt"})
    assert missing.isError and "hello.txt" in missing.content[0].text, missing


async def main() -> None:
    if sys.argv[1] == "stdio":
        transport = stdio_client(StdioServerParameters(command=sys.argv[2], args=[sys.argv[3]]))
    else:
        transport = streamablehttp_client(sys.argv[2])
    async with transport as streams, ClientSession(streams[0], streams[1]) as session:
        await use(session)


asyncio.run(asyncio.wait_for(main(), 60))
