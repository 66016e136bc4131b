"""Streamable HTTP with sessions, for clients up to 2025-11-25."""

from cases.odd import LIST_ROOTS, MALFORMED, UNASKED, methods
from messages import (
    BOTH, INITIALIZED, JSON, NEWEST, REVISIONS, UNKNOWN, call, headers, initialize, meta, newest_headers, notification,
    request,
)
from wire import Http

EVENTS = ("Accept", "text/event-stream")


def scenes():
    """The scenes, by name."""
    yield "sessions/initialize", initializations
    for revision in REVISIONS:
        yield f"sessions/revision/{revision}", conversation(revision)
    yield "sessions/methods", every_method
    yield "sessions/without", without
    yield "sessions/headers", odd_headers
    yield "sessions/unasked", unasked
    yield "sessions/malformed", malformed
    yield "sessions/streams", streams
    yield "sessions/end", end
    yield "sessions/holders", holders
    yield "sessions/full", full
    yield "sessions/newest", newest


def with_sessions(stage, **more):
    """A server whose clients get sessions."""
    return Http(stage, server={"sessions": "on", **more})


def begun(http, name, revision="2025-11-25", capabilities=None, *more, path="/mcp"):
    """Begins a session; gives back its headers."""
    reply = http.post(f"{name}/initialize", initialize(0, revision, capabilities), [JSON, BOTH, *more], path)
    session = ("Mcp-Session-Id", reply["headers"].get("mcp-session-id", "none"))
    own = headers(revision, session, *more)
    http.post(f"{name}/initialized", INITIALIZED, own, path)
    return own


def initializations(stage, prefix):
    """Initialize with every revision and odd params."""
    with with_sessions(stage) as http:
        for version in [*REVISIONS, NEWEST, *UNKNOWN]:
            http.post(f"{prefix}/version {version}", initialize(1, version), headers())
            http.post(f"{prefix}/version {version} and header", initialize(1, version), headers(version))
        http.post(f"{prefix}/another header", initialize(1, "2025-11-25"), headers("2025-06-18"))
        for word, params in {
            "empty": {}, "null": None, "list": [], "no client": {"protocolVersion": "2025-11-25", "capabilities": {}}
        }.items():
            http.post(f"{prefix}/{word}", request(1, "initialize", params), headers())
        http.post(f"{prefix}/text id", initialize("one", "2025-11-25"), headers())
        http.post(
            f"{prefix}/unknown session", initialize(1, "2025-11-25"), headers(None, ("Mcp-Session-Id", "unknown"))
        )
        own = begun(http, f"{prefix}/own")
        http.post(f"{prefix}/own/again", initialize(2, "2025-11-25"), own)
        http.post(f"{prefix}/own/again with another revision", initialize(3, "2025-03-26"), own)
        http.request(f"{prefix}/metrics", "GET", "/metrics")


def conversation(revision):
    """A scene of an ordinary session."""

    def scene(stage, prefix):
        with with_sessions(stage) as http:
            own = begun(http, prefix, revision)
            http.post(f"{prefix}/ping", request(1, "ping"), own)
            http.post(f"{prefix}/tools_list", request(2, "tools/list"), own)
            http.post(f"{prefix}/list_roots", call(3, "list_roots", {}), own)
            http.post(f"{prefix}/stat_file", call("four", "stat_file", {"root": "workspace", "path": "hello.txt"}), own)
            http.post(f"{prefix}/large", call(5, "read_file", {"root": "workspace", "path": "large.txt"}), own)
            http.post(f"{prefix}/unicode", call(6, "read_file", {"root": "workspace", "path": "größe 漢字 🦀.txt"}), own)
            http.post(f"{prefix}/fails", call(7, "stat_file", {"root": "workspace", "path": "no"}), own)
            http.post(f"{prefix}/not an object", call(8, "stat_file", [1]), own)
            http.post(f"{prefix}/unknown tool", call(9, "nothing", {}), own)
            http.post(f"{prefix}/progress", call(10, "list_roots", {}, {"progressToken": 1}), own)
            http.post(f"{prefix}/same id again", call(10, "list_roots", {}), own)
            http.post(f"{prefix}/cancelled finished", notification("notifications/cancelled", {"requestId": 10}), own)
            http.request(f"{prefix}/delete", "DELETE", "/mcp", own[2:])
            http.post(f"{prefix}/ping after delete", request(11, "ping"), own)

    return scene


def every_method(stage, prefix):
    """Every method in one session."""
    with with_sessions(stage) as http:
        own = begun(http, prefix)
        for word, message in methods():
            http.post(f"{prefix}/{word}", message, own)


def without(stage, prefix):
    """Requests that name no session, or one that is not there."""
    with with_sessions(stage) as http:
        messages = {
            "ping": request(1, "ping"), "list": request(1, "tools/list"), "call": LIST_ROOTS,
            "discover": request(1, "server/discover"),
            "initialized": INITIALIZED, "result": UNASKED["result"], "unknown method": request(1, "no/such"),
            "garbage": "garbage", "empty": "",
            "misread call": call(1, "list_roots", [1]), "batch": [request(1, "ping")],
        }
        sessions = {
            "missing": [], "unknown": [("Mcp-Session-Id", "unknown")], "empty": [("Mcp-Session-Id", "")],
            "of a kind": [("Mcp-Session-Id", "00000000-0000-4000-8000-000000000000")],
            "twice": [("Mcp-Session-Id", "a"), ("Mcp-Session-Id", "b")],
            "not ascii": [("Mcp-Session-Id", "ü")],
        }
        for word, session in sessions.items():
            for kind, message in messages.items():
                if word in ("missing", "unknown") or kind in ("call", "initialized"):
                    http.post(f"{prefix}/{word}/{kind}", message, headers("2025-11-25", *session))
            http.request(
                f"{prefix}/{word}/GET", "GET", "/mcp", [EVENTS, ("MCP-Protocol-Version", "2025-11-25"), *session],
                is_open=True
            )
            http.request(f"{prefix}/{word}/DELETE", "DELETE", "/mcp", session)
        for verb in ["PUT", "PATCH", "HEAD", "OPTIONS"]:
            http.request(f"{prefix}/{verb}", verb, "/mcp", [BOTH])


def odd_headers(stage, prefix):
    """A session's requests with other headers than usual."""
    with with_sessions(stage) as http:
        own = begun(http, prefix)
        session = own[3]
        ping = request(1, "ping")
        for version in [*REVISIONS, NEWEST, *UNKNOWN, ""]:
            http.post(f"{prefix}/revision {version}", ping, [JSON, BOTH, ("MCP-Protocol-Version", version), session])
        http.post(f"{prefix}/no revision", ping, [JSON, BOTH, session])
        http.post(f"{prefix}/revision twice", ping, [*own, own[2]])
        for word, accept in {
            "json": "application/json", "events": "text/event-stream", "any": "*/*", "html": "text/html"
        }.items():
            http.post(f"{prefix}/accept {word}", ping, [JSON, ("Accept", accept), *own[2:]])
        http.post(f"{prefix}/no accept", ping, [JSON, *own[2:]])
        http.post(f"{prefix}/text", ping, [("Content-Type", "text/plain"), BOTH, *own[2:]])
        http.post(f"{prefix}/no content type", ping, [BOTH, *own[2:]])
        http.post(f"{prefix}/session twice", ping, [*own, session])
        http.post(f"{prefix}/session and another", ping, [*own, ("Mcp-Session-Id", "other")])
        http.post(f"{prefix}/another and session", ping, [*own[:3], ("Mcp-Session-Id", "other"), session])
        http.post(f"{prefix}/wrong routing headers", ping, [*own, ("Mcp-Method", "tools/list"), ("Mcp-Name", "x")])
        http.post(f"{prefix}/meta of the newest", call(1, "list_roots", {}, meta()), own)
        http.post(f"{prefix}/meta of its own", call(1, "list_roots", {}, meta("2025-11-25")), own)
        message = call(1, "list_roots", {}, meta())
        http.post(f"{prefix}/newest in a session", message, [*newest_headers(message), session])


def unasked(stage, prefix):
    """Notifications and answers that nobody asked for, in a session."""
    with with_sessions(stage) as http:
        own = begun(http, f"{prefix}/begin")
        for word, message in UNASKED.items():
            http.post(f"{prefix}/{word}", message, own)
        http.post(f"{prefix}/a call behind", LIST_ROOTS, own)


def malformed(stage, prefix):
    """Bodies that are no message, in a session."""
    with with_sessions(stage) as http:
        own = begun(http, prefix)
        for word, data in MALFORMED.items():
            http.post(f"{prefix}/{word}", data, own)
        http.post(f"{prefix}/a call behind", LIST_ROOTS, own)


def streams(stage, prefix):
    """The stream of a session, and streams that are taken up again."""
    with with_sessions(stage) as http:
        own = begun(http, prefix)
        get = [EVENTS, *own[2:]]
        http.request(f"{prefix}/open", "GET", "/mcp", get, is_open=True)
        http.request(f"{prefix}/open again", "GET", "/mcp", get, is_open=True)
        first, _ = http.stream(f"{prefix}/one of two", "GET", "/mcp", get)
        second, _ = http.stream(f"{prefix}/two of two", "GET", "/mcp", get)
        http.rest(f"{prefix}/one of two, its rest", first, True)
        second.close()
        http.post(f"{prefix}/a call", LIST_ROOTS, own)
        for word, event in {
            "0": "0", "1": "1", "0/0": "0/0", "1/0": "1/0", "0/1": "0/1", "far": "99/99", "garbage": "x", "empty": "",
            "negative": "-1"
        }.items():
            http.request(f"{prefix}/behind event {word}", "GET", "/mcp", [*get, ("Last-Event-ID", event)], is_open=True)
        http.request(f"{prefix}/accepts json", "GET", "/mcp", [("Accept", "application/json"), *own[2:]], is_open=True)
        http.request(f"{prefix}/accepts nothing", "GET", "/mcp", own[2:], is_open=True)
        http.request(f"{prefix}/accepts any", "GET", "/mcp", [("Accept", "*/*"), *own[2:]], is_open=True)
        http.request(
            f"{prefix}/newest", "GET", "/mcp", [EVENTS, ("MCP-Protocol-Version", NEWEST), own[3]], is_open=True
        )
        http.request(
            f"{prefix}/unknown revision", "GET", "/mcp", [EVENTS, ("MCP-Protocol-Version", "1.0"), own[3]], is_open=True
        )
        http.request(f"{prefix}/no revision", "GET", "/mcp", [EVENTS, own[3]], is_open=True)
        open_stream, _ = http.stream(f"{prefix}/open until deleted", "GET", "/mcp", get)
        http.request(f"{prefix}/deleted", "DELETE", "/mcp", own[2:])
        http.rest(f"{prefix}/open until deleted, its end", open_stream)


def end(stage, prefix):
    """Sessions that are deleted, twice, or with odd headers."""
    with with_sessions(stage) as http:
        own = begun(http, f"{prefix}/first")
        http.request(f"{prefix}/newest", "DELETE", "/mcp", [("MCP-Protocol-Version", NEWEST), own[3]])
        http.request(f"{prefix}/unknown revision", "DELETE", "/mcp", [("MCP-Protocol-Version", "1.0"), own[3]])
        http.request(f"{prefix}/with a body", "DELETE", "/mcp", own, LIST_ROOTS)
        http.post(f"{prefix}/call after that", LIST_ROOTS, own)
        own = begun(http, f"{prefix}/second")
        http.request(f"{prefix}/deleted", "DELETE", "/mcp", own[3:])
        http.request(f"{prefix}/deleted again", "DELETE", "/mcp", own[3:])
        http.request(f"{prefix}/stream after that", "GET", "/mcp", [EVENTS, *own[2:]], is_open=True)
        http.post(f"{prefix}/notification after that", INITIALIZED, own)
        http.post(f"{prefix}/initialize after that", initialize(1, "2025-11-25"), own)


def holders(stage, prefix):
    """A session is its holder's alone."""
    with with_sessions(stage, bearer_tokens_file="tokens") as http:
        one, two = ("Authorization", "Bearer first-token-of-two"), ("Authorization", "Bearer second-token-of-two")
        http.post(f"{prefix}/initialize without a token", initialize(1, "2025-11-25"), headers())
        own = begun(http, prefix, "2025-11-25", None, one)
        http.post(f"{prefix}/its holder", LIST_ROOTS, own)
        http.post(f"{prefix}/another holder", LIST_ROOTS, [*own[:4], two])
        http.post(f"{prefix}/nobody", LIST_ROOTS, own[:4])
        http.request(f"{prefix}/another holder deletes", "DELETE", "/mcp", [own[3], two])
        http.request(f"{prefix}/another holder listens", "GET", "/mcp", [EVENTS, own[3], two], is_open=True)
        http.request(f"{prefix}/its holder deletes", "DELETE", "/mcp", [own[3], one])


def full(stage, prefix):
    """More sessions than there may be."""
    with with_sessions(stage, max_sessions=2) as http:
        begun(http, f"{prefix}/first")
        own = begun(http, f"{prefix}/second")
        http.post(f"{prefix}/third", initialize(1, "2025-11-25"), headers())
        http.post(f"{prefix}/ping without a session", request(1, "ping"), headers())
        http.post(f"{prefix}/a call of the second", LIST_ROOTS, own)
        message = call(1, "list_roots", {}, meta())
        http.post(f"{prefix}/a call of the newest", message, newest_headers(message))
        http.request(f"{prefix}/delete", "DELETE", "/mcp", own[2:])
        http.post(f"{prefix}/third again", initialize(1, "2025-11-25"), headers())


def newest(stage, prefix):
    """The newest revision needs no session where there are some."""
    with with_sessions(stage) as http:
        for word, message in methods(meta()):
            own = [(key, value) for key, value in newest_headers(message) if value.isascii()]
            http.post(f"{prefix}/{word}", message, own)
        message = call(1, "list_roots", {}, meta())
        http.post(f"{prefix}/without routing headers", message, headers(NEWEST))
        http.post(f"{prefix}/with an unknown session", message, newest_headers(message, ("Mcp-Session-Id", "unknown")))
        http.post(f"{prefix}/without metadata", LIST_ROOTS, newest_headers(LIST_ROOTS))
        http.post(f"{prefix}/notification", INITIALIZED, newest_headers(INITIALIZED))
        http.request(f"{prefix}/metrics", "GET", "/metrics")
