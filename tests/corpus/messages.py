"""The messages that are sent, and the headers that go with them."""

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
NEWEST = "2026-07-28"
UNKNOWN = ["1.0", "2099-01-01"]

CLIENT = {"name": "corpus", "version": "1"}
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"

# How the usual metadata is written in the recording.
META = '"_meta":{{"%s":"%s","%s":{{"name":"corpus","version":"1"}},"%s":{}}}' % (
    VERSION_KEY, NEWEST, CLIENT_KEY, CAPABILITIES_KEY
)
SHORT_META = {META.format("{}"): '"_meta":<usual>', META.format('{"sampling":{}}'): '"_meta":<sampling>'}

JSON = ("Content-Type", "application/json")
BOTH = ("Accept", "application/json, text/event-stream")

# Stands for a part that is left out.
LEFT_OUT = object()


def meta(version=NEWEST, capabilities=None, **more):
    """What every request of the newest revision carries."""
    return {VERSION_KEY: version, CLIENT_KEY: CLIENT, CAPABILITIES_KEY: capabilities or {}, **more}


def request(own_id, method, params=LEFT_OUT, own_meta=None):
    """A request."""
    message = {"jsonrpc": "2.0", "id": own_id, "method": method}
    if own_meta is not None:
        params = {**({} if params is LEFT_OUT else params), "_meta": own_meta}
    if params is not LEFT_OUT:
        message["params"] = params
    return message


def call(own_id, tool, arguments=LEFT_OUT, own_meta=None, **more):
    """A call of a tool."""
    params = {"name": tool}
    if arguments is not LEFT_OUT:
        params["arguments"] = arguments
    return request(own_id, "tools/call", {**params, **more}, own_meta)


def initialize(own_id, version, capabilities=None, client=None):
    """The first request of the revisions up to 2025-11-25."""
    params = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": client or CLIENT}
    return request(own_id, "initialize", params)


def notification(method, params=LEFT_OUT):
    """A message that gets no answer."""
    message = {"jsonrpc": "2.0", "method": method}
    if params is not LEFT_OUT:
        message["params"] = params
    return message


INITIALIZED = notification("notifications/initialized")


def shortened(text):
    """A request's text with its usual parts in short."""
    for usual, short in SHORT_META.items():
        text = text.replace(usual, short)
    return text


def shortened_headers(own, message):
    """A request's headers with the usual ones in short."""
    own = list(own)
    if isinstance(message, dict) and "method" in message and own[:3] == headers(NEWEST):
        usual = newest_headers(message)
        if own[: len(usual)] == usual:
            return ["<newest>", *written_headers(own[len(usual):])]
    if own[:2] == [JSON, BOTH]:
        return ["<usual>", *written_headers(own[2:])]
    return written_headers(own)


def written_headers(own):
    """Headers as they are written."""
    return [f"{key}: {value}" for key, value in own]


def headers(version=None, *more):
    """The usual headers of a POST."""
    own = [JSON, BOTH]
    if version is not None:
        own.append(("MCP-Protocol-Version", version))
    return own + list(more)


def newest_headers(message, *more, version=NEWEST):
    """The headers of the newest revision, which repeat parts of the message."""
    own = headers(version, ("Mcp-Method", message["method"]))
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    name = params.get("name", params.get("uri"))
    if isinstance(name, str):
        own.append(("Mcp-Name", name))
    arguments = params.get("arguments")
    root = arguments.get("root") if isinstance(arguments, dict) else None
    if isinstance(root, str) and root.isascii() and root.isprintable():
        own.append(("Mcp-Param-Root", root))
    return own + list(more)


def greet(line, name, version="2025-11-25", capabilities=None):
    """Begins a conversation on stdio."""
    line.ask(f"{name}/initialize", initialize(0, version, capabilities))
    line.tell(f"{name}/initialized", INITIALIZED)
