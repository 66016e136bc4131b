"""Messages that both transports get: every method with good and bad params, and bytes that are no message."""

import json

from messages import INITIALIZED, LEFT_OUT, call, notification, request

LIST_ROOTS = call(1, "list_roots", {})

# Methods with the params that are worth a look. The word names the exchange.
METHODS = [
    ("ping", "ping", LEFT_OUT), ("ping empty", "ping", {}), ("ping null", "ping", None), ("ping list", "ping", []),
    ("ping text", "ping", "x"), ("ping extra", "ping", {"a": 1}),
    ("tools/list", "tools/list", LEFT_OUT), ("tools/list empty", "tools/list", {}),
    ("tools/list null", "tools/list", None),
    ("tools/list cursor", "tools/list", {"cursor": "next"}), ("tools/list no cursor", "tools/list", {"cursor": None}),
    ("tools/list bad cursor", "tools/list", {"cursor": 5}), ("tools/list list", "tools/list", [1]),
    ("tools/list number", "tools/list", 7), ("tools/list extra", "tools/list", {"a": 1}),
    ("tools/call", "tools/call", LEFT_OUT), ("tools/call null", "tools/call", None),
    ("tools/call empty", "tools/call", {}),
    ("tools/call list", "tools/call", ["list_roots", {}]), ("tools/call no name", "tools/call", {"arguments": {}}),
    ("tools/call bad name", "tools/call", {"name": 7, "arguments": {}}),
    ("tools/call text", "tools/call", "list_roots"),
    ("tools/call null name", "tools/call", {"name": None}), ("tools/call empty name", "tools/call", {"name": ""}),
    ("tools/call long name", "tools/call", {"name": "n" * 200}),
    ("tools/call unicode name", "tools/call", {"name": "lesen-ü"}),
    ("tools/call bad and unknown", "tools/call", {"name": "nothing", "arguments": [1]}),
    ("server/discover", "server/discover", LEFT_OUT), ("server/discover empty", "server/discover", {}),
    ("resources/list", "resources/list", LEFT_OUT), ("resources/list cursor", "resources/list", {"cursor": "x"}),
    ("resources/read", "resources/read", {"uri": "file:///a"}), ("resources/read empty", "resources/read", {}),
    ("resources/read file", "resources/read", {"uri": "fs://workspace/docs/notes.md"}),
    ("resources/read image", "resources/read", {"uri": "fs://workspace/pixel.png"}),
    ("resources/read directory", "resources/read", {"uri": "fs://workspace/src"}),
    ("resources/read missing", "resources/read", {"uri": "fs://workspace/missing"}),
    ("resources/read outside", "resources/read", {"uri": "fs://workspace/../outside.txt"}),
    ("resources/read other root", "resources/read", {"uri": "fs://nowhere/hello.txt"}),
    ("resources/directory/read", "resources/directory/read", {"uri": "fs://workspace/docs"}),
    ("resources/directory/read file", "resources/directory/read", {"uri": "fs://workspace/hello.txt"}),
    ("resources/templates/list", "resources/templates/list", LEFT_OUT),
    ("completion of a path", "completion/complete",
     {"ref": {"type": "ref/resource", "uri": "fs://workspace/{+path}"}, "argument": {"name": "path", "value": "do"}}),
    ("completion of another", "completion/complete",
     {"ref": {"type": "ref/resource", "uri": "fs://workspace/{+path}"}, "argument": {"name": "x", "value": "do"}}),
    ("prompts/get changes", "prompts/get", {"name": "changes", "arguments": {"root": "workspace"}}),
    ("prompts/get undo", "prompts/get", {"name": "undo", "arguments": {"root": "workspace"}}),
    ("prompts/get review", "prompts/get", {"name": "review", "arguments": {"root": "workspace"}}),
    ("prompts/get of no root", "prompts/get", {"name": "changes", "arguments": {"root": "nowhere"}}),
    ("resources/subscribe", "resources/subscribe", {"uri": "file:///a"}),
    ("resources/unsubscribe", "resources/unsubscribe", {"uri": "file:///a"}),
    ("prompts/list", "prompts/list", LEFT_OUT), ("prompts/get", "prompts/get", {"name": "p"}),
    ("prompts/get empty", "prompts/get", {}),
    ("completion/complete", "completion/complete",
     {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "v"}}),
    ("completion/complete empty", "completion/complete", {}),
    ("logging/setLevel", "logging/setLevel", {"level": "info"}),
    ("logging/setLevel bad", "logging/setLevel", {"level": "loud"}),
    ("subscriptions/listen", "subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
    ("subscriptions/listen empty", "subscriptions/listen", {}),
    ("tasks/get", "tasks/get", {"taskId": "t"}), ("tasks/list", "tasks/list", LEFT_OUT),
    ("tasks/result", "tasks/result", {"taskId": "t"}),
    ("tasks/cancel", "tasks/cancel", {"taskId": "t"}), ("roots/list", "roots/list", LEFT_OUT),
    ("sampling/createMessage", "sampling/createMessage", {}), ("elicitation/create", "elicitation/create", {}),
    ("unknown", "no/such/method", LEFT_OUT), ("unknown params", "no/such/method", {"a": [1, {"b": None}]}),
    ("empty method", "", LEFT_OUT), ("case", "TOOLS/LIST", LEFT_OUT), ("long method", "m" * 300, LEFT_OUT),
    ("unicode method", "werkzeuge/ä漢", LEFT_OUT), ("notification with id", "notifications/initialized", LEFT_OUT),
    ("cancelled with id", "notifications/cancelled", {"requestId": 1}),
]


def methods(own_meta=None):
    """The requests of all methods. Metadata goes into params that can hold it."""
    for number, (word, method, params) in enumerate(METHODS):
        takes = own_meta is not None and (params is LEFT_OUT or isinstance(params, dict))
        # A subscription runs on and keeps its id.
        own_id = 1000 + number if method == "subscriptions/listen" else 1
        yield word, request(own_id, method, params, own_meta if takes else None)


# What gets no answer as a rule.
UNASKED = {
    "initialized": INITIALIZED,
    "initialized params": notification("notifications/initialized", {"a": 1}),
    "initialized null": notification("notifications/initialized", None),
    "initialized list": notification("notifications/initialized", [1]),
    "cancelled unknown": notification("notifications/cancelled", {"requestId": 4242, "reason": "enough"}),
    "cancelled text id": notification("notifications/cancelled", {"requestId": "nobody"}),
    "cancelled no id": notification("notifications/cancelled", {"reason": "x"}),
    "cancelled null id": notification("notifications/cancelled", {"requestId": None}),
    "cancelled bad id": notification("notifications/cancelled", {"requestId": {"a": 1}}),
    "cancelled no params": notification("notifications/cancelled"),
    "cancelled text": notification("notifications/cancelled", "1"),
    "progress": notification("notifications/progress", {"progressToken": 1, "progress": 0.5, "total": 1}),
    "progress bad": notification("notifications/progress", {"progressToken": {}}),
    "progress no params": notification("notifications/progress"),
    "roots changed": notification("notifications/roots/list_changed"),
    "message": notification("notifications/message", {"level": "info", "data": "x"}),
    "unknown": notification("notifications/strange", {"a": 1}),
    "unknown list": notification("notifications/strange", []),
    "no prefix": notification("strange"),
    "method of requests": notification("tools/list"),
    "call without id": notification("tools/call", {"name": "list_roots", "arguments": {}}),
    "initialize without id": notification("initialize", {"protocolVersion": "2025-11-25"}),
    "without jsonrpc": {"method": "notifications/initialized"},
    "wrong jsonrpc": {"jsonrpc": "1.0", "method": "notifications/initialized"},
    "result": {"jsonrpc": "2.0", "id": 77, "result": {}},
    "result text id": {"jsonrpc": "2.0", "id": "x", "result": {"a": 1}},
    "result null id": {"jsonrpc": "2.0", "id": None, "result": {}},
    "result without id": {"jsonrpc": "2.0", "result": {}},
    "result is a number": {"jsonrpc": "2.0", "id": 77, "result": 5},
    "result is null": {"jsonrpc": "2.0", "id": 77, "result": None},
    "error": {"jsonrpc": "2.0", "id": 77, "error": {"code": -1, "message": "no"}},
    "error with data": {"jsonrpc": "2.0", "id": 77, "error": {"code": -1, "message": "no", "data": [1]}},
    "error without message": {"jsonrpc": "2.0", "id": 77, "error": {"code": -1}},
    "error with text code": {"jsonrpc": "2.0", "id": 77, "error": {"code": "x", "message": "no"}},
    "error is text": {"jsonrpc": "2.0", "id": 77, "error": "no"},
    "error without id": {"jsonrpc": "2.0", "error": {"code": -1, "message": "no"}},
    "error null id": {"jsonrpc": "2.0", "id": None, "error": {"code": -1, "message": "no"}},
    "result and error": {"jsonrpc": "2.0", "id": 77, "result": {}, "error": {"code": -1, "message": "no"}},
    "result and method": {"jsonrpc": "2.0", "id": 77, "method": "ping", "result": {}},
}


def nested(levels):
    """A request whose params are nested so deep, the message itself counted."""
    params = '{"a":' * (levels - 2) + "{}" + "}" * (levels - 2)
    return '{"jsonrpc":"2.0","id":5,"method":"ping","params":' + params + "}"


def many(values, item="0"):
    """A request with so many values in a list."""
    items = ",".join([item] * values)
    return '{"jsonrpc":"2.0","id":6,"method":"ping","params":{"x":[' + items + "]}}"


PING = '{"jsonrpc":"2.0","id":5,"method":"ping"}'
CALL = b'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":%s}'

# Bytes that are no message, or an odd one.
MALFORMED = {
    "word": b"hello", "number": b"3", "text": b'"hello"', "true": b"true", "null": b"null", "float": b"1.5e3",
    "empty object": b"{}", "empty list": b"[]", "batch of one": f"[{PING}]".encode(),
    "batch of two": f"[{PING},{PING}]".encode(),
    "batch of notification": b'[{"jsonrpc":"2.0","method":"notifications/initialized"}]', "batch of garbage": b"[1,2]",
    "cut": b'{"jsonrpc":"2.0","id":5,"meth', "cut in string": b'{"jsonrpc":"2.0","id":5,"method":"pi',
    "trailing comma": b'{"jsonrpc":"2.0","id":5,"method":"ping",}',
    "single quotes": b"{'jsonrpc':'2.0','id':5,'method':'ping'}",
    "two messages": f"{PING}{PING}".encode(), "two messages and a space": f"{PING} {PING}".encode(),
    "trailing word": f"{PING} x".encode(),
    "comment": b'{"jsonrpc":"2.0",/* x */"id":5,"method":"ping"}',
    "nan": b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":NaN}}',
    "leading zero": b'{"jsonrpc":"2.0","id":05,"method":"ping"}', "plus": b'{"jsonrpc":"2.0","id":+5,"method":"ping"}',
    "control character": b'{"jsonrpc":"2.0","id":5,"method":"pi\x01ng"}',
    "tab in string": b'{"jsonrpc":"2.0","id":5,"method":"pi\tng"}',
    "invalid utf-8": b'{"jsonrpc":"2.0","id":"six","method":"\xff"}',
    "invalid utf-8 in id": b'{"jsonrpc":"2.0","id":"\xff","method":"ping"}',
    "overlong utf-8": b'{"jsonrpc":"2.0","id":5,"method":"\xc0\xaf"}',
    "surrogate bytes": b'{"jsonrpc":"2.0","id":5,"method":"\xed\xa0\x80"}',
    "unpaired surrogate": b'{"jsonrpc":"2.0","id":5,"method":"\\ud800"}',
    "low surrogate": b'{"jsonrpc":"2.0","id":5,"method":"\\udc00"}',
    "surrogate pair": b'{"jsonrpc":"2.0","id":5,"method":"\\ud83e\\udd80"}',
    "surrogate in id": b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
    "escaped nul": b'{"jsonrpc":"2.0","id":5,"method":"pi\\u0000ng"}',
    "nul byte": b'{"jsonrpc":"2.0","id":5,"method":"pi\0ng"}',
    "bom": b"\xef\xbb\xbf" + PING.encode(), "bom twice": b"\xef\xbb\xbf\xef\xbb\xbf" + PING.encode(),
    "bom alone": b"\xef\xbb\xbf",
    "utf-16": PING.encode("utf-16-le"), "spaces around": f"  \t{PING}  ".encode(),
    "no jsonrpc": b'{"id":8,"method":"ping"}',
    "jsonrpc 1.0": b'{"jsonrpc":"1.0","id":8,"method":"ping"}',
    "jsonrpc number": b'{"jsonrpc":2.0,"id":8,"method":"ping"}',
    "jsonrpc null": b'{"jsonrpc":null,"id":8,"method":"ping"}', "no method": b'{"jsonrpc":"2.0","id":8}',
    "method number": b'{"jsonrpc":"2.0","id":8,"method":3}', "method null": b'{"jsonrpc":"2.0","id":8,"method":null}',
    "method list": b'{"jsonrpc":"2.0","id":8,"method":["ping"]}', "only params": b'{"jsonrpc":"2.0","params":{}}',
    "extra fields": b'{"jsonrpc":"2.0","id":8,"method":"ping","more":[1],"x":null}',
    "duplicate id": b'{"jsonrpc":"2.0","id":8,"id":9,"method":"ping"}',
    "duplicate method": b'{"jsonrpc":"2.0","id":8,"method":"ping","method":"tools/list"}',
    "duplicate params": b'{"jsonrpc":"2.0","id":8,"method":"ping","params":{},"params":{"a":1}}',
    "duplicate jsonrpc": b'{"jsonrpc":"2.0","jsonrpc":"2.0","id":8,"method":"ping"}',
    "duplicate name": CALL % b'{"name":"list_roots","name":"grep","arguments":{}}',
    "duplicate argument": CALL % b'{"name":"list_folder","arguments":{"root":"x","root":"workspace","path":"src"}}',
    "key order": b'{"params":{"arguments":{},"name":"list_roots"},"method":"tools/call","id":8,"jsonrpc":"2.0"}',
    "escaped keys": b'{"json\\u0072pc":"2.0","\\u0069d":8,"method":"ping"}',
    "keys in capitals": b'{"JSONRPC":"2.0","ID":8,"METHOD":"ping"}',
    "unclosed deep": ('{"jsonrpc":"2.0","id":9,"method":"ping","params":' + "[" * 100_000).encode(),
    "levels 127": nested(127).encode(), "levels 128": nested(128).encode(), "levels 1000": nested(1000).encode(),
    "values 99990": many(99_990).encode(), "values 100001": many(100_001).encode(),
    "objects 100001": many(100_001, '{"":0}').encode(),
    "answer of many values": b'{"jsonrpc":"2.0","id":7,"result":[' + b"0," * 100_001 + b"0]}",
    "answer that is cut": b'{"jsonrpc":"2.0","id":7,"result":{"x":', "answer without jsonrpc": b'{"id":7,"result":{}}',
}

# Ids as they are written.
IDS = {
    "zero": "0", "minus zero": "-0", "negative": "-1", "one": "1", "whole float": "1.0", "float": "1.5",
    "exponent": "1e3",
    "2^31": str(2**31), "2^53+1": str(2**53 + 1), "2^63-1": str(2**63 - 1), "2^63": str(2**63), "2^64": str(2**64),
    "-2^63": str(-2**63), "beyond": "1" + "0" * 40, "null": "null", "true": "true", "false": "false", "object": "{}",
    "list": "[1]",
    "empty": '""', "text": '"a"', "number as text": '"1"', "unicode": '"id-ü漢🦀"', "escapes": '"a\\"b\\\\c\\n\\u0041"',
    "long": '"' + "i" * 300 + '"', "nul": '"\\u0000"', "space": '" "',
}


def with_id(text, method="ping", params=None):
    """A request with an id as it is written."""
    more = "" if params is None else f',"params":{json.dumps(params, separators=(",", ":"))}'
    return f'{{"jsonrpc":"2.0","id":{text},"method":"{method}"{more}}}'
