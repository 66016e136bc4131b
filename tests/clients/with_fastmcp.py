"""FastMCP's client: without a session as it comes, with one as a client of the revisions that know sessions."""

from contextlib import asynccontextmanager

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError
from steps import Connection, Reply, run


class FastMcp(Connection):
    def __init__(self, client: Client) -> None:
        self.client = client

    async def tools(self):
        return {tool.name: tool.input_schema for tool in await self.client.list_tools()}

    async def call(self, tool, arguments, progress):
        async def told(done, total, message):
            progress.append(done)

        try:
            reply = await self.client.call_tool(tool, arguments, progress_handler=told)
        except ToolError as error:
            return Reply(str(error), None, True)
        return Reply(reply.content[0].text, reply.structured_content, reply.is_error)


@asynccontextmanager
async def connect(target, sessions):
    if isinstance(target, list):
        target = StdioTransport(command=target[0], args=target[1:], keep_alive=False)
    async with Client(target, mode="legacy" if sessions else "auto") as client:
        print(client.protocol_version)
        yield FastMcp(client)


run(connect)
