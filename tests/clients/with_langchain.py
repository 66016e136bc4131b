"""LangChain's adapters: tools that connect anew for every call, and tools that share one connection."""

from contextlib import asynccontextmanager

from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from steps import Connection, Reply, run


class LangChain(Connection):
    def __init__(self, loaded, heard: list[float], shares_a_session: bool) -> None:
        self.loaded = {tool.name: tool for tool in loaded}
        self.heard = heard
        self.shares_a_session = shares_a_session

    async def tools(self):
        return {name: tool.args_schema for name, tool in self.loaded.items()}

    async def call(self, tool, arguments, progress):
        self.heard.clear()
        message = await self.loaded[tool].ainvoke({"type": "tool_call", "id": "1", "name": tool, "args": arguments})
        progress.extend(self.heard)
        structured = message.artifact and message.artifact["structured_content"]
        return Reply(message.content[0]["text"], structured, message.status == "error")


def prepare(target):
    heard: list[float] = []

    async def told(done, total, message, context):
        heard.append(done)

    if isinstance(target, list):
        server = {"transport": "stdio", "command": target[0], "args": target[1:]}
    else:
        server = {"transport": "streamable_http", "url": target}
    return MultiServerMCPClient({"files": server}, callbacks=Callbacks(on_progress=told)), heard


@asynccontextmanager
async def one_by_one(target, sessions):
    client, heard = prepare(target)
    yield LangChain(await client.get_tools(), heard, shares_a_session=False)


@asynccontextmanager
async def together(target, sessions):
    client, heard = prepare(target)
    async with client.session("files") as session:
        loaded = await load_mcp_tools(session, callbacks=client.callbacks)
        yield LangChain(loaded, heard, shares_a_session=True)


run(one_by_one, together)
