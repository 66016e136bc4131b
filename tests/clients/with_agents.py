"""The MCP servers of the OpenAI agents SDK, without an agent: no model is asked.

Which revision it speaks goes by the MCP SDK it finds: sessions need the first generation.
"""

from contextlib import asynccontextmanager

from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from steps import Connection, Reply, run


class Agents(Connection):
    tells_progress = False

    def __init__(self, server: MCPServerStdio | MCPServerStreamableHttp) -> None:
        self.server = server

    async def tools(self):
        return {tool["name"]: tool["inputSchema"] for tool in map(plain, await self.server.list_tools())}

    async def call(self, tool, arguments, progress):
        reply = plain(await self.server.call_tool(tool, arguments))
        return Reply(reply["content"][0]["text"], reply["structuredContent"], reply["isError"])


def plain(model):
    """As it was on the wire: the two generations of the MCP SDK spell attributes differently."""
    return model.model_dump(by_alias=True)


@asynccontextmanager
async def connect(target, sessions):
    if isinstance(target, list):
        server = MCPServerStdio({"command": target[0], "args": target[1:]})
    else:
        server = MCPServerStreamableHttp({"url": target})
    async with server:
        yield Agents(server)


run(connect)
