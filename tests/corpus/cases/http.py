"""Streamable HTTP without sessions: headers, methods, paths, bodies, and who is let in."""

import base64

from cases.odd import IDS, LIST_ROOTS, MALFORMED, UNASKED, methods, with_id
from messages import (
    BOTH, CAPABILITIES_KEY, CLIENT_KEY, JSON, NEWEST, REVISIONS, UNKNOWN, VERSION_KEY, call, headers, initialize, meta,
    newest_headers, request,
)
from wire import Http, written

READ = call(1, "stat_file", {"root": "workspace", "path": "hello.txt"})
NEW_READ = call(1, "stat_file", {"root": "workspace", "path": "hello.txt"}, meta())
PLAIN_HEADERS = headers("2025-11-25")


def scenes():
    """The scenes, by name."""
    yield "http/methods/2025-03-26", methods_of(headers())
    yield "http/methods/2025-11-25", methods_of(PLAIN_HEADERS)
    yield f"http/methods/{NEWEST}", newest_methods
    yield "http/initialize", initializations
    yield "http/media types", media_types
    yield "http/revision header", revision_headers
    yield "http/meta", metadata
    yield "http/routing headers", routing_headers
    yield "http/verbs", verbs
    yield "http/paths", paths
    yield "http/hosts", hosts
    yield "http/origins", origins
    yield "http/tokens", tokens
    yield "http/unasked", unasked
    yield "http/malformed", malformed
    yield "http/ids", ids
    yield "http/sizes", sizes
    yield "http/raw", raw
    yield "http/progress", progress
    yield "http/pages", pages


def methods_of(own_headers):
    """A scene with every method and these headers."""

    def scene(stage, prefix):
        with Http(stage) as http:
            for word, message in methods():
                http.post(f"{prefix}/{word}", message, own_headers)

    return scene


def newest_methods(stage, prefix):
    """Every method with metadata and its headers."""
    with Http(stage) as http:
        for word, message in methods(meta()):
            own = [(key, value) for key, value in newest_headers(message) if value.isascii()]
            http.post(f"{prefix}/{word}", message, own)


def initializations(stage, prefix):
    """Initialize without a session: params, and the header against them."""
    with Http(stage) as http:
        for version in [*REVISIONS, NEWEST, *UNKNOWN, ""]:
            http.post(f"{prefix}/version {version}", initialize(1, version), headers())
            http.post(f"{prefix}/version {version} and header", initialize(1, version), headers(version or None))
            http.post(f"{prefix}/version {version} and another header", initialize(1, version), headers("2025-03-26"))
        odd = {
            "empty": {}, "null": None, "list": [], "no client": {"protocolVersion": "2025-11-25", "capabilities": {}},
            "version number": {"protocolVersion": 1, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
        }
        for word, params in odd.items():
            http.post(f"{prefix}/{word}", request(1, "initialize", params), headers())
            http.post(f"{prefix}/{word} with header", request(1, "initialize", params), PLAIN_HEADERS)
        newest = initialize(1, NEWEST)
        for word, values in {
            "right": ["initialize"], "wrong": ["tools/list"], "twice": ["initialize"] * 2, "none": []
        }.items():
            own = headers(NEWEST, *(("Mcp-Method", value) for value in values))
            http.post(f"{prefix}/method header {word}", newest, own)


def media_types(stage, prefix):
    """Accept and Content-Type in every form."""
    accepts = {
        "missing": [], "both": [BOTH[1]], "swapped": ["text/event-stream, application/json"],
        "json": ["application/json"],
        "events": ["text/event-stream"], "any": ["*/*"], "any of a kind": ["application/*, text/*"],
        "html": ["text/html"],
        "empty": [""], "capitals": ["Application/JSON, TEXT/event-stream"],
        "two headers": ["application/json", "text/event-stream"],
        "weights": ["application/json;q=0.5, text/event-stream;q=0.9"],
        "no json wanted": ["application/json;q=0, text/event-stream"],
        "browser": ["text/html,application/xhtml+xml,*/*;q=0.8"],
        "not ascii": ["application/json, text/event-stream, ü"],
    }
    kinds = {
        "missing": [], "json": ["application/json"], "charset": ["application/json; charset=utf-8"],
        "capitals": ["APPLICATION/JSON"],
        "text": ["text/plain"], "form": ["application/x-www-form-urlencoded"],
        "longer": ["application/json-patch+json"],
        "ld": ["application/ld+json"], "empty": [""], "twice": ["application/json", "application/json"],
        "two": ["text/plain", "application/json"], "latin": ["application/json; charset=latin-1"],
        "spaces": ["  application/json  ;x"],
    }
    with Http(stage) as http:
        for manner, message, revision in [("older", READ, "2025-11-25"), ("newest", NEW_READ, NEWEST)]:
            extra = [one for one in newest_headers(NEW_READ)[3:]] if manner == "newest" else []
            revision = ("MCP-Protocol-Version", revision)
            for word, values in accepts.items():
                own = [JSON, *(("Accept", value) for value in values), revision, *extra]
                http.post(f"{prefix}/{manner}/accept {word}", message, own)
            for word, values in kinds.items():
                own = [*(("Content-Type", value) for value in values), BOTH, revision, *extra]
                http.post(f"{prefix}/{manner}/content type {word}", message, own)
        http.post(
            f"{prefix}/notification accepts json", UNASKED["initialized"],
            [JSON, ("Accept", "application/json"), ("MCP-Protocol-Version", "2025-11-25")]
        )
        http.post(f"{prefix}/garbage as text", "garbage", [("Content-Type", "text/plain"), BOTH])


def revision_headers(stage, prefix):
    """The revision in the header against that in the body."""
    values = {
        "none": [], **{version: [version] for version in [*REVISIONS, NEWEST, *UNKNOWN]}, "empty": [""],
        "spaces": [" 2025-11-25 "],
        "draft": ["DRAFT-2026-v1"], "twice": ["2025-11-25", "2025-11-25"], "two": ["2025-11-25", NEWEST],
        "list": ["2025-11-25, 2026-07-28"], "not ascii": ["2025-11-25ü"], "capitals": ["2025-11-25T"],
    }
    bodies = {
        "call": READ, "ping": request(1, "ping"), "newest call": NEW_READ,
        "newest list": request(1, "tools/list", {"cursor": "x"}, meta()),
        "discover": request(1, "server/discover", own_meta=meta()),
        "discover without meta": request(1, "server/discover"),
        "older meta": call(1, "list_roots", {}, meta("2025-11-25")),
        "unknown meta": call(1, "list_roots", {}, meta("2099-01-01")),
        "notification": UNASKED["initialized"], "garbage": "garbage",
    }
    with Http(stage) as http:
        for body, message in bodies.items():
            has_meta = isinstance(message, dict) and "_meta" in message.get("params", {})
            routing = newest_headers(message)[3:] if has_meta else []
            for word, own in values.items():
                versions = [("MCP-Protocol-Version", value) for value in own]
                http.post(f"{prefix}/{body}/{word}", message, [JSON, BOTH, *versions, *routing])


def metadata(stage, prefix):
    """Metadata with something missing or wrong, with headers that would fit."""
    usual = meta()
    variants = {
        **{f"without {key.split('/')[1]}": {own: usual[own] for own in usual if own != key} for key in usual},
        "empty": {}, "null": None, "list": [], "text": "x", "version number": {**usual, VERSION_KEY: 1},
        "version null": {**usual, VERSION_KEY: None},
        "client text": {**usual, CLIENT_KEY: "corpus"},
        "client without version": {**usual, CLIENT_KEY: {"name": "corpus"}},
        "capabilities list": {**usual, CAPABILITIES_KEY: []}, "capabilities null": {**usual, CAPABILITIES_KEY: None},
        "capabilities many": {
            **usual, CAPABILITIES_KEY: {"sampling": {}, "roots": {}, "elicitation": {}, "extensions": {}}
        },
        "log level": {**usual, "io.modelcontextprotocol/logLevel": "debug"}, "other": {**usual, "com.example/x": 1},
        "progress number": {**usual, "progressToken": 1}, "progress text": {**usual, "progressToken": "p"},
    }
    with Http(stage) as http:
        for word, own in variants.items():
            for kind, message in {
                "call": call(1, "list_roots", {}), "list": request(1, "tools/list", {"cursor": "x"})
            }.items():
                message = {**message, "params": {**message["params"], "_meta": own}}
                http.post(f"{prefix}/{kind}/{word}", message, newest_headers(message))


def routing_headers(stage, prefix):
    """Mcp-Method, Mcp-Name and Mcp-Param-Root: right, missing, wrong, twice, in base64."""
    def wrapped(text):
        return f"=?base64?{base64.b64encode(text.encode()).decode()}?="

    variants = {
        "right": {}, "no method": {"Mcp-Method": []}, "wrong method": {"Mcp-Method": ["tools/list"]},
        "case of method": {"Mcp-Method": ["Tools/Call"]},
        "method twice": {"Mcp-Method": ["tools/call"] * 2}, "two methods": {"Mcp-Method": ["tools/call", "ping"]},
        "empty method": {"Mcp-Method": [""]}, "method base64": {"Mcp-Method": [wrapped("tools/call")]},
        "no name": {"Mcp-Name": []}, "wrong name": {"Mcp-Name": ["grep"]}, "case of name": {"Mcp-Name": ["Stat_File"]},
        "name twice": {"Mcp-Name": ["stat_file"] * 2}, "two names": {"Mcp-Name": ["stat_file", "grep"]},
        "empty name": {"Mcp-Name": [""]},
        "name base64": {"Mcp-Name": [wrapped("stat_file")]}, "wrong name base64": {"Mcp-Name": [wrapped("grep")]},
        "bad base64": {"Mcp-Name": ["=?base64?%%%?="]}, "empty base64": {"Mcp-Name": ["=?base64??="]},
        "base64 unclosed": {"Mcp-Name": ["=?base64?c3RhdA=="]},
        "base64 of bytes": {"Mcp-Name": ["=?base64?/w==?="]},
        "base64 in capitals": {"Mcp-Name": ["=?BASE64?c3RhdF9maWxl?="]},
        "no root": {"Mcp-Param-Root": []}, "wrong root": {"Mcp-Param-Root": ["second"]},
        "case of root": {"Mcp-Param-Root": ["Workspace"]},
        "root twice": {"Mcp-Param-Root": ["workspace"] * 2}, "two roots": {"Mcp-Param-Root": ["workspace", "second"]},
        "empty root": {"Mcp-Param-Root": [""]}, "root base64": {"Mcp-Param-Root": [wrapped("workspace")]},
        "wrong root base64": {"Mcp-Param-Root": [wrapped("second")]},
        "root not ascii": {"Mcp-Param-Root": ["wörkspace"]},
        "spaces around": {"Mcp-Name": ["  stat_file  "]}, "other param": {"Mcp-Param-Path": ["hello.txt"]},
        "none": {"Mcp-Method": [], "Mcp-Name": [], "Mcp-Param-Root": []},
    }
    usual = {"Mcp-Method": ["tools/call"], "Mcp-Name": ["stat_file"], "Mcp-Param-Root": ["workspace"]}
    with Http(stage) as http:
        for word, variant in variants.items():
            pairs = [(key, value) for key, own in {**usual, **variant}.items() for value in own]
            http.post(f"{prefix}/newest/{word}", NEW_READ, headers(NEWEST, *pairs))
            http.post(f"{prefix}/older/{word}", READ, headers("2025-11-25", *pairs))
        for word, arguments in {
            "root missing": {"path": "x"}, "root number": {"root": 7, "path": "x"},
            "root unicode": {"root": "wörkspace", "path": "x"},
            "root null": {"root": None, "path": "x"}, "root spaces": {"root": " workspace ", "path": "x"},
            "arguments missing": None,
        }.items():
            for value, extra in {
                "no header": [], "header": [("Mcp-Param-Root", "workspace")], "number": [("Mcp-Param-Root", "7")],
                "unicode": [("Mcp-Param-Root", wrapped("wörkspace"))],
                "spaces": [("Mcp-Param-Root", wrapped(" workspace "))],
            }.items():
                message = call(1, "stat_file", arguments, meta())
                http.post(
                    f"{prefix}/newest/{word} and {value}", message,
                    headers(NEWEST, ("Mcp-Method", "tools/call"), ("Mcp-Name", "stat_file"), *extra)
                )
        other = {
            "list": request(1, "tools/list", {"cursor": "x"}, meta()), "ping": request(1, "ping", own_meta=meta()),
            "read": request(1, "resources/read", {"uri": "file:///a"}, meta()),
            "prompt": request(1, "prompts/get", {"name": "p"}, meta()),
            "task": request(1, "tasks/get", {"taskId": "t"}, meta()),
            "unknown tool": call(1, "nothing", {"root": "workspace"}, meta()),
            "unicode tool": call(1, "lesen-ü", {}, meta()), "no root in the tool": call(1, "list_roots", {}, meta()),
            "notification": UNASKED["initialized"],
        }
        for word, message in other.items():
            for kind, pairs in {
                "none": [], "method": [("Mcp-Method", message["method"])],
                "method and name": [("Mcp-Method", message["method"]), ("Mcp-Name", "p")],
                "all": [
                    ("Mcp-Method", message["method"]), ("Mcp-Name", wrapped("lesen-ü")), ("Mcp-Param-Root", "workspace")
                ],
            }.items():
                http.post(f"{prefix}/newest/{word} with {kind}", message, headers(NEWEST, *pairs))


def verbs(stage, prefix):
    """Other methods of HTTP on every page."""
    with Http(stage, toolsets=["workspace", "files"]) as http:
        for path in ["/mcp", "/mcp/files", "/health", "/metrics", "/other"]:
            for verb in ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "POST", "get", "PROPFIND"]:
                if (path, verb) in [("/metrics", "GET"), ("/metrics", "HEAD")]:
                    continue
                http.request(f"{prefix}/{verb} {path}", verb, path, [BOTH])
        for word, own in {
            "last event": [("Last-Event-ID", "1")], "session": [("Mcp-Session-Id", "x")],
            "newest": [("MCP-Protocol-Version", NEWEST)]
        }.items():
            http.request(f"{prefix}/GET with {word}", "GET", "/mcp", [BOTH, *own])
            http.request(f"{prefix}/DELETE with {word}", "DELETE", "/mcp", [BOTH, *own])
            http.post(f"{prefix}/POST with {word}", READ, headers(None, *own))
        http.request(f"{prefix}/PUT with a body", "PUT", "/mcp", headers(), READ)


def paths(stage, prefix):
    """Paths that are served, and others."""
    with Http(stage, toolsets=["workspace", "files", "memory", "guide"]) as http:
        for path in [
            "/mcp", "/mcp/", "/mcp/workspace", "/mcp/workspace/", "/mcp/workspace//", "/mcp/files", "/mcp/memory",
            "/mcp/guide", "/", "/mcpx", "/MCP", "/mcp/other", "/mcp/workspace/x", "/mcp?x=1", "/mcp/workspace?y",
            "//mcp", "/./mcp", "/mcp/../mcp", "/%6dcp", "/mcp#x", "*", "http://127.0.0.1/mcp",
            "http://evil.example/mcp", "/mcp/ü",
        ]:
            http.post(f"{prefix}/{path}", request(1, "ping"), PLAIN_HEADERS, path)
        for name in ["workspace", "files", "memory", "guide"]:
            http.post(f"{prefix}/initialize {name}", initialize(1, "2025-11-25"), headers(), f"/mcp/{name}")
            message = request(1, "server/discover", own_meta=meta())
            http.post(f"{prefix}/discover {name}", message, newest_headers(message), f"/mcp/{name}")


def hosts(stage, prefix):
    """Hosts that are ours, listed, or strange."""
    own = [
        "localhost", "LOCALHOST:1", "127.0.0.1", "127.8.8.8:80", "[::1]:8091", "files.example", "files.example:99",
        "other.example:8443", "other.example", "evil.example", "127.0.0.1.evil.example", "localhost.", "10.0.0.1",
        "0.0.0.0", "user@localhost", "localhost:99999", "localhost:x", "a b", "", "[::1", "ü.example",
    ]
    with Http(stage, server={"allowed_hosts": ["files.example", "other.example:8443"]}) as http:
        for host in own:
            http.post(f"{prefix}/{host}", READ, [("Host", host), *PLAIN_HEADERS])
        http.post(f"{prefix}/two hosts", READ, [("Host", "localhost"), ("Host", "localhost"), *PLAIN_HEADERS])
        http.request(f"{prefix}/strange host for health", "GET", "/health", [("Host", "evil.example")])
        http.request(f"{prefix}/strange host for metrics", "GET", "/metrics", [("Host", "evil.example")])
        http.raw(f"{prefix}/no host", b"POST /mcp HTTP/1.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def origins(stage, prefix):
    """Origins that are listed, our own, or strange; and browsers that ask first."""
    with Http(stage, server={"allowed_origins": ["https://app.example", "http://local.example:3000"]}) as http:
        own = [
            "https://app.example", "https://APP.example:443", "http://app.example", "https://app.example:8",
            "http://local.example:3000", "http://local.example", "https://evil.example", "null", "",
            "http://localhost:1", f"http://127.0.0.1:{http.port}", "file://",
        ]
        for origin in own:
            shown = origin.replace(str(http.port), "port")
            http.post(f"{prefix}/{shown}", READ, [("Origin", origin), *PLAIN_HEADERS])
            ask = [
                ("Origin", origin), ("Access-Control-Request-Method", "POST"),
                ("Access-Control-Request-Headers", "content-type")
            ]
            http.request(f"{prefix}/preflight {shown}", "OPTIONS", "/mcp", ask)
        listed = ("Origin", "https://app.example")
        http.post(f"{prefix}/two origins", READ, [listed, ("Origin", "https://evil.example"), *PLAIN_HEADERS])
        http.post(f"{prefix}/listed and refused", "garbage", [listed, *PLAIN_HEADERS])
        http.post(f"{prefix}/listed and newest", NEW_READ, [listed, *newest_headers(NEW_READ)])
        http.post(f"{prefix}/listed and a notification", UNASKED["initialized"], [listed, *PLAIN_HEADERS])
        http.request(f"{prefix}/listed and another path", "GET", "/other", [listed])
        http.request(
            f"{prefix}/preflight of another path", "OPTIONS", "/other",
            [listed, ("Access-Control-Request-Method", "GET")]
        )
        http.request(f"{prefix}/options without asking", "OPTIONS", "/mcp", [listed])
        http.request(
            f"{prefix}/preflight without origin", "OPTIONS", "/mcp", [("Access-Control-Request-Method", "POST")]
        )


def tokens(stage, prefix):
    """Tokens: missing, wrong, right, and what needs none."""
    values = {
        "missing": [], "wrong": ["Bearer third-token-of-two"], "right": ["Bearer first-token-of-two"],
        "second": ["Bearer second-token-of-two"],
        "case of scheme": ["bearer first-token-of-two"], "case of token": ["Bearer FIRST-token-of-two"],
        "no scheme": ["first-token-of-two"], "basic": ["Basic Zmlyc3QtdG9rZW4="],
        "empty": [""], "scheme alone": ["Bearer"], "two spaces": ["Bearer  first-token-of-two"],
        "trailing": ["Bearer first-token-of-two "],
        "twice": ["Bearer first-token-of-two"] * 2, "two": ["Bearer third-token-of-two", "Bearer first-token-of-two"],
        "prefix": ["Bearer first-toke"], "not ascii": ["Bearer ü"],
    }
    with Http(stage, server={"bearer_tokens_file": "tokens"}) as http:
        for word, own in values.items():
            pairs = [("Authorization", value) for value in own]
            http.post(f"{prefix}/{word}", READ, [*pairs, *PLAIN_HEADERS])
            http.post(f"{prefix}/{word} newest", NEW_READ, [*pairs, *newest_headers(NEW_READ)])
        for path in ["/health", "/metrics", "/other", "/mcp"]:
            http.request(f"{prefix}/GET {path} without", "GET", path)
        http.request(f"{prefix}/GET /other with", "GET", "/other", [("Authorization", "Bearer first-token-of-two")])
        http.post(f"{prefix}/garbage without", "garbage", PLAIN_HEADERS)
        http.post(f"{prefix}/token in the address", READ, PLAIN_HEADERS, "/mcp?access_token=first-token-of-two")


def unasked(stage, prefix):
    """Notifications and answers that nobody asked for."""
    with Http(stage) as http:
        for word, message in UNASKED.items():
            http.post(f"{prefix}/{word}", message, PLAIN_HEADERS)
            if "method" in message:
                http.post(f"{prefix}/newest {word}", message, newest_headers(message))


def malformed(stage, prefix):
    """Bodies that are no message."""
    with Http(stage) as http:
        for word, data in MALFORMED.items():
            http.post(f"{prefix}/{word}", data, PLAIN_HEADERS)
        for word, data in {
            "empty": b"", "spaces": b"  \n ", "crlf": b"\r\n", "line end behind": written(READ) + b"\r\n"
        }.items():
            http.post(f"{prefix}/{word}", data, PLAIN_HEADERS)
            http.post(f"{prefix}/newest {word}", data, newest_headers(NEW_READ))
        http.request(f"{prefix}/no body", "POST", "/mcp", PLAIN_HEADERS)


def ids(stage, prefix):
    """Ids of every form."""
    with Http(stage) as http:
        for word, text in IDS.items():
            http.post(f"{prefix}/{word}", with_id(text), PLAIN_HEADERS)
            arguments = {"name": "stat_file", "arguments": {"root": "no", "path": "x"}}
            http.post(f"{prefix}/call {word}", with_id(text, "tools/call", arguments), PLAIN_HEADERS)


def sizes(stage, prefix):
    """Bodies around the largest size, with and without a length."""
    def padded(size):
        form = '{"jsonrpc":"2.0","id":77,"method":"ping","params":{"x":"PAD"}}'
        return form.replace("PAD", "x" * (size - len(form) + 3)).encode()

    with Http(stage, server={"max_body_size": 2000}) as http:
        for size in [1999, 2000, 2001, 5000, 60_000]:
            http.post(f"{prefix}/{size}", padded(size), PLAIN_HEADERS)
            if size > 2001:
                continue  # Of a longer one the server would hang up on what is still under way.
            body = padded(size)
            chunked = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
            http.post(f"{prefix}/{size} in chunks", chunked, [*PLAIN_HEADERS, ("Transfer-Encoding", "chunked")])
        http.post(f"{prefix}/garbage 3000", b"x" * 3000, PLAIN_HEADERS)
        http.post(f"{prefix}/a call behind", READ, PLAIN_HEADERS)


def raw(stage, prefix):
    """Requests that are odd below MCP."""
    body = written(LIST_ROOTS)
    head = "Host: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    length = f"Content-Length: {len(body)}\r\n"

    def sent(first, more, data=b""):
        return f"{first}\r\n{more}\r\n".encode("latin-1") + data

    close = "Connection: close\r\n"
    requests = {
        "http 1.0": sent("POST /mcp HTTP/1.0", head + length, body),
        "http 1.0 without host": sent("GET /health HTTP/1.0", ""),
        "close": sent("POST /mcp HTTP/1.1", head + close + length, body),
        "http 2": sent("GET /health HTTP/2.0", "Host: localhost\r\n"),
        "two lengths": sent("POST /mcp HTTP/1.1", head + length + "Transfer-Encoding: chunked\r\n", b"0\r\n\r\n"),
        "two lengths swapped": sent(
            "POST /mcp HTTP/1.1", head + "Transfer-Encoding: chunked\r\n" + length, b"0\r\n\r\n"
        ),
        "lengths that differ": sent("POST /mcp HTTP/1.1", head + "Content-Length: 4\r\nContent-Length: 5\r\n", b"abcd"),
        "length twice": sent("POST /mcp HTTP/1.1", head + close + length + length, body),
        "length of words": sent("POST /mcp HTTP/1.1", head + "Content-Length: x\r\n"),
        "negative length": sent("POST /mcp HTTP/1.1", head + "Content-Length: -1\r\n"),
        "chunked": sent(
            "POST /mcp HTTP/1.1", head + "Transfer-Encoding: chunked\r\n",
            f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
        ),
        "bad chunks": sent("POST /mcp HTTP/1.1", head + "Transfer-Encoding: chunked\r\n", b"zz\r\nabc\r\n0\r\n\r\n"),
        "gzip": sent("POST /mcp HTTP/1.1", head + close + "Content-Encoding: gzip\r\n" + length, body),
        "expect": sent("POST /mcp HTTP/1.1", head + close + length + "Expect: 100-continue\r\n", body),
        "upgrade": sent("GET /mcp HTTP/1.1", "Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"),
        "no request": b"hello\r\n\r\n",
        "empty lines first": b"\r\n\r\n" + sent("GET /health HTTP/1.1", "Host: localhost\r\n" + close),
        "bare line feeds": b"GET /health HTTP/1.1\nHost: localhost\nConnection: close\n\n",
        "header without colon": sent("GET /health HTTP/1.1", "Host localhost\r\n"),
        "header with space": sent("GET /health HTTP/1.1", "Host : localhost\r\n"),
        "headers 200": sent(
            "GET /health HTTP/1.1", "Host: localhost\r\n" + "".join(f"X-{number}: 1\r\n" for number in range(200))
        ),
        "long path": sent(f"GET /{'x' * 9000} HTTP/1.1", "Host: localhost\r\n" + close),
        "nul in path": sent("GET /a\0b HTTP/1.1", "Host: localhost\r\n"),
        "tls": bytes.fromhex("160301000a0100000603030000000000"),
        "connect": sent("CONNECT localhost:80 HTTP/1.1", "Host: localhost\r\n"),
    }
    with Http(stage) as http:
        for word, data in requests.items():
            http.raw(f"{prefix}/{word}", data)
        connection = http.connect()
        twice = sent("GET /health HTTP/1.1", "Host: localhost\r\n") + sent("POST /mcp HTTP/1.1", head + length, body)
        http.recorded(
            f"{prefix}/two at once, the first", {"raw": twice.decode()}, connection.exchange(twice, "GET", False)
        )
        http.recorded(f"{prefix}/two at once, the second", {"raw": ""}, connection.read_reply("POST"))
        connection.close()


def progress(stage, prefix):
    """Progress tokens on quick calls: JSON, because nothing precedes the result."""
    tokens = {"number": 1, "text": "t", "float": 1.5, "null": None, "object": {}}
    with Http(stage) as http:
        for word, token in tokens.items():
            message = call(1, "stat_file", {"root": "workspace", "path": "hello.txt"}, {"progressToken": token})
            http.post(f"{prefix}/older {word}", message, PLAIN_HEADERS)
            message = call(1, "stat_file", {"root": "workspace", "path": "hello.txt"}, meta(progressToken=token))
            http.post(f"{prefix}/newest {word}", message, newest_headers(message))


def pages(stage, prefix):
    """The pages that are not MCP, after a known number of calls."""
    with Http(stage) as http:
        http.request(f"{prefix}/health", "GET", "/health")
        http.request(f"{prefix}/health head", "HEAD", "/health")
        http.post(f"{prefix}/a call", READ, PLAIN_HEADERS)
        http.post(f"{prefix}/a newest call", NEW_READ, newest_headers(NEW_READ))
        http.post(
            f"{prefix}/a call that fails", call(1, "stat_file", {"root": "workspace", "path": "no"}), PLAIN_HEADERS
        )
        http.post(f"{prefix}/a refused call", call(1, "stat_file", {}), PLAIN_HEADERS)
        http.post(f"{prefix}/an unknown tool", call(1, "nothing", {}), PLAIN_HEADERS)
        http.post(f"{prefix}/a misread call", call(1, "stat_file", [1]), PLAIN_HEADERS)
        http.post(f"{prefix}/two revisions", READ, [*PLAIN_HEADERS, ("MCP-Protocol-Version", "x")])
        http.request(f"{prefix}/metrics", "GET", "/metrics")
