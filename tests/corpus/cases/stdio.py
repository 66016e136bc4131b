"""The protocol on standard input and output, apart from the tools."""

from contextlib import contextmanager

from cases.odd import IDS, LIST_ROOTS, MALFORMED, UNASKED, methods, with_id
from ground import Ground
from messages import (
    CAPABILITIES_KEY, CLIENT, CLIENT_KEY, INITIALIZED, LEFT_OUT, NEWEST, REVISIONS, UNKNOWN, VERSION_KEY, call, greet,
    initialize, meta, notification, request,
)
from wire import Stdio

HASH_ENDLESS = {"root": "workspace", "path": "endless", "algorithm": "md5"}


def scenes():
    """The scenes, by name."""
    yield "stdio/first", first_messages
    yield "stdio/initialize", initializations
    yield "stdio/lifecycle", lifecycle
    for revision in REVISIONS:
        yield f"stdio/methods/{revision}", methods_of(revision)
    yield f"stdio/methods/{NEWEST}", newest_methods
    yield "stdio/meta", newest_meta
    yield "stdio/unasked", unasked
    yield "stdio/malformed", malformed
    yield "stdio/ids", ids
    yield "stdio/id in use", id_in_use
    yield "stdio/cancelled", cancelled
    yield "stdio/progress", progress
    yield "stdio/long lines", long_lines
    yield "stdio/line ends", line_ends
    yield "stdio/two sets", two_sets


def on_one_ground(scene):
    """A scene of many processes that change no file."""

    def on_ground(stage, prefix):
        with Ground() as ground:
            scene(stage, prefix, ground)

    return on_ground


@on_one_ground
def first_messages(stage, prefix, ground):
    """Each message as the very first one; then the usual beginning."""
    requests = {
        "ping": request(9, "ping"), "tools_list": request(9, "tools/list"), "call": call(9, "list_roots", {}),
        "unknown": request(9, "no/such/method"), "discover": request(9, "server/discover"),
        "discover with meta": request(9, "server/discover", own_meta=meta()),
        "discover of an unknown revision": request(9, "server/discover", own_meta=meta("2099-01-01")),
        "discover of an older revision": request(9, "server/discover", own_meta=meta("2025-11-25")),
        "call of an unknown revision": call(9, "list_roots", {}, meta("2099-01-01")),
        "call of an older revision": call(9, "list_roots", {}, meta("2025-11-25")),
        "ping with meta": request(9, "ping", own_meta=meta()),
        "setLevel": request(9, "logging/setLevel", {"level": "info"}),
        "misread call": request(9, "tools/call", [1]), "misread list": request(9, "tools/list", {"cursor": 5}),
        "initialized with id": request(9, "notifications/initialized"),
    }
    for word, message in requests.items():
        with Stdio(stage, ground=ground) as line:
            line.ask(f"{prefix}/{word}", message)
            greet(line, f"{prefix}/{word}/then")
            line.ask(f"{prefix}/{word}/then/list_roots", LIST_ROOTS)
            line.finish(f"{prefix}/{word}/then/end")
    others = {
        "initialized": INITIALIZED, "cancelled": notification("notifications/cancelled", {"requestId": 1}),
        "unknown notification": notification("notifications/strange"),
        "result": {"jsonrpc": "2.0", "id": 1, "result": {}},
        "error": {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}}, "garbage": "garbage",
        "empty line": "",
        "batch": [request(1, "ping")], "spoiled answer": '{"id":1,"result":{}}', "bad id": with_id("null"),
    }
    for word, message in others.items():
        with Stdio(stage, ground=ground) as line:
            line.tell(f"{prefix}/{word}", message)
            greet(line, f"{prefix}/{word}/then")
            line.ask(f"{prefix}/{word}/then/list_roots", LIST_ROOTS)
    with Stdio(stage, ground=ground) as line:
        line.finish(f"{prefix}/nothing at all")


@on_one_ground
def initializations(stage, prefix, ground):
    """Good and bad params of initialize, each in a process of its own."""
    good = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
    many = {
        "roots": {"listChanged": True}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}},
        "experimental": {"x": {"y": 1}}, "tasks": {"list": {}}, "extensions": {"com.example/x": {}}, "unknown": 1,
    }
    variants = {
        **{
            f"version {version}": {**good, "protocolVersion": version} for version in [*REVISIONS, NEWEST, *UNKNOWN, ""]
        },
        "version number": {**good, "protocolVersion": 20251125}, "version null": {**good, "protocolVersion": None},
        "no version": {key: good[key] for key in ("capabilities", "clientInfo")},
        "no capabilities": {key: good[key] for key in ("protocolVersion", "clientInfo")},
        "no client": {key: good[key] for key in ("protocolVersion", "capabilities")},
        "client null": {**good, "clientInfo": None}, "client text": {**good, "clientInfo": "corpus"},
        "client without version": {**good, "clientInfo": {"name": "corpus"}},
        "client without name": {**good, "clientInfo": {"version": "1"}},
        "client numbers": {**good, "clientInfo": {"name": 1, "version": 2}},
        "client in full": {
            **good, "clientInfo": {**CLIENT, "title": "T", "websiteUrl": "https://example.org", "icons": [], "x": 1}
        },
        "client unicode": {**good, "clientInfo": {"name": "kunde-ü漢🦀", "version": ""}},
        "capabilities null": {**good, "capabilities": None}, "capabilities list": {**good, "capabilities": []},
        "capabilities many": {**good, "capabilities": many},
        "capabilities odd": {**good, "capabilities": {"sampling": 1, "roots": "x"}},
        "extra": {**good, "more": 1}, "with meta": {**good, "_meta": {"progressToken": 1}},
        "with newest meta": {**good, "_meta": meta()},
        "empty": {}, "null": None, "list": ["2025-11-25", {}, CLIENT], "text": "x", "left out": LEFT_OUT,
    }
    for word, params in variants.items():
        with Stdio(stage, ground=ground) as line:
            line.ask(f"{prefix}/{word}", request("first", "initialize", params))
            line.ask(f"{prefix}/{word}/then", LIST_ROOTS)


def lifecycle(stage, prefix):
    """Messages before initialized, a second initialize, and other revisions in between."""
    with Stdio(stage) as line:
        line.ask(f"{prefix}/initialize", initialize(1, "2025-06-18"))
        line.ask(f"{prefix}/list before initialized", request(2, "tools/list"))
        line.ask(f"{prefix}/call before initialized", call(3, "list_roots", {}))
        line.ask(f"{prefix}/initialize before initialized", initialize(4, "2025-06-18"))
        line.tell(f"{prefix}/initialized", INITIALIZED)
        line.ask(f"{prefix}/initialize again", initialize(5, "2025-06-18"))
        line.ask(f"{prefix}/initialize another", initialize(6, "2024-11-05"))
        line.ask(f"{prefix}/initialize the newest", initialize(7, NEWEST))
        line.ask(f"{prefix}/initialize badly", request(8, "initialize", {}))
        line.tell(f"{prefix}/initialized again", INITIALIZED)
        line.ask(f"{prefix}/call with newest meta", call(9, "list_roots", {}, meta()))
        line.ask(f"{prefix}/call with unknown meta", call(10, "list_roots", {}, meta("2099-01-01")))
        line.ask(f"{prefix}/call with older meta", call(11, "list_roots", {}, meta("2025-03-26")))
        line.ask(f"{prefix}/discover", request(12, "server/discover", own_meta=meta()))
        line.ask(f"{prefix}/discover without meta", request(13, "server/discover"))
        line.ask(f"{prefix}/call", call(14, "list_roots", {}))
        line.finish(f"{prefix}/end")
    with Stdio(stage) as line:
        prefix = f"{prefix}/newest"
        line.ask(f"{prefix}/call", call(1, "list_roots", {}, meta()))
        line.ask(f"{prefix}/call without meta", call(2, "list_roots", {}))
        line.ask(f"{prefix}/list without meta", request(3, "tools/list"))
        line.ask(f"{prefix}/ping without meta", request(4, "ping"))
        line.ask(f"{prefix}/initialize", initialize(5, "2025-11-25"))
        line.tell(f"{prefix}/initialized", INITIALIZED)
        line.ask(f"{prefix}/call after initialize", call(6, "list_roots", {}))
        line.ask(f"{prefix}/call with meta again", call(7, "list_roots", {}, meta()))
        line.ask(f"{prefix}/unknown tool", call(8, "nothing", {}, meta()))
        line.ask(f"{prefix}/misread call", call(9, "list_roots", [], meta()))
        line.finish(f"{prefix}/end")


def methods_of(revision):
    """A scene with every method after initialize."""

    def scene(stage, prefix):
        with Stdio(stage) as line:
            greet(line, prefix, revision)
            for word, message in methods():
                line.ask(f"{prefix}/{word}", message)
            line.finish(f"{prefix}/end")

    return scene


def newest_methods(stage, prefix):
    """Every method with metadata and no greeting."""
    with Stdio(stage) as line:
        for word, message in methods(meta()):
            line.ask(f"{prefix}/{word}", message)
        line.finish(f"{prefix}/end")


@on_one_ground
def newest_meta(stage, prefix, ground):
    """Metadata with something missing or wrong."""
    usual = meta()
    variants = {
        **{f"without {key.split('/')[1]}": {own: usual[own] for own in usual if own != key} for key in usual},
        "empty": {}, "null": None, "list": [], "text": "x", "version number": {**usual, VERSION_KEY: 20260728},
        "version null": {**usual, VERSION_KEY: None}, "client text": {**usual, CLIENT_KEY: "corpus"},
        "client without version": {**usual, CLIENT_KEY: {"name": "corpus"}}, "client null": {**usual, CLIENT_KEY: None},
        "capabilities list": {**usual, CAPABILITIES_KEY: []}, "capabilities null": {**usual, CAPABILITIES_KEY: None},
        "capabilities many": {**usual, CAPABILITIES_KEY: {"sampling": {}, "roots": {}, "elicitation": {}}},
        "log level": {**usual, "io.modelcontextprotocol/logLevel": "debug"}, "other": {**usual, "com.example/x": 1},
        "progress token": {**usual, "progressToken": "p"}, "trace": {**usual, "traceparent": "00-1-2-03"},
        **{f"revision {version}": meta(version) for version in [*REVISIONS, *UNKNOWN, ""]},
    }
    for place in ["first", "later"]:
        for word, own in variants.items():
            for kind in ["call", "list"]:
                if place == "later" and kind == "list":
                    continue
                params = {"name": "list_roots", "arguments": {}} if kind == "call" else {}
                method = "tools/call" if kind == "call" else "tools/list"
                with Stdio(stage, ground=ground) as line:
                    if place == "later":
                        line.ask(f"{prefix}/{place}/{kind}/{word}/before", call(1, "list_roots", {}, meta()))
                    line.ask(f"{prefix}/{place}/{kind}/{word}", request(2, method, {**params, "_meta": own}))


def unasked(stage, prefix):
    """What nobody asked for, after either beginning."""
    with Stdio(stage) as line:
        greet(line, f"{prefix}/begin")
        line.ask(f"{prefix}/a call", call(1, "list_roots", {}))
        line.tell(f"{prefix}/cancelled finished", notification("notifications/cancelled", {"requestId": 1}))
        for word, message in UNASKED.items():
            line.tell(f"{prefix}/{word}", message)
        line.ask(f"{prefix}/a call behind", call(2, "list_roots", {}))
        line.finish(f"{prefix}/end")
    with Stdio(stage) as line:
        line.ask(f"{prefix}/newest/a call", call(1, "list_roots", {}, meta()))
        for word, message in UNASKED.items():
            line.tell(f"{prefix}/newest/{word}", message)
        line.ask(f"{prefix}/newest/a call behind", call(2, "list_roots", {}, meta()))
        line.finish(f"{prefix}/newest/end")


def malformed(stage, prefix):
    """Lines that are no message."""
    with Stdio(stage) as line:
        greet(line, prefix)
        for word, data in MALFORMED.items():
            line.tell(f"{prefix}/{word}", data)
        line.ask(f"{prefix}/a call behind", call(2, "list_roots", {}))
        line.finish(f"{prefix}/end")


def ids(stage, prefix):
    """Ids of every form, with a method that is answered early and one that is answered late."""
    with Stdio(stage) as line:
        greet(line, prefix)
        for word, text in IDS.items():
            line.ask(f"{prefix}/ping {word}", with_id(text))
            line.ask(
                f"{prefix}/call {word}",
                with_id(text, "tools/call", {"name": "stat_file", "arguments": {"root": "no", "path": "x"}})
            )
        line.finish(f"{prefix}/end")


@contextmanager
def endless(stage):
    """A connection with a file that takes for ever to hash."""
    with Ground() as ground:
        ground.sparse("workspace/endless", 1 << 42)
        with Stdio(stage, ground=ground, limits={"request_timeout": 300}) as line:
            yield line


def id_in_use(stage, prefix):
    """A second request with the id of one that still runs."""
    with endless(stage) as line:
        greet(line, prefix)
        for own_id in [3, "three"]:
            running = call(own_id, "hash_file", HASH_ENDLESS)
            line.begin(f"{prefix}/{own_id} begins", running)
            line.ask(f"{prefix}/{own_id} again", running)
            line.ask(f"{prefix}/{own_id} ping", request(own_id, "ping"))
            line.ask(f"{prefix}/{own_id} quick call", call(own_id, "list_roots", {}))
            line.ask(f"{prefix}/{own_id} unknown method", request(own_id, "no/such/method"))
            line.ask(f"{prefix}/{own_id} another id", call(f"not {own_id}", "list_roots", {}))
            line.tell(f"{prefix}/{own_id} cancelled", notification("notifications/cancelled", {"requestId": own_id}))
        line.finish(f"{prefix}/end")


def cancelled(stage, prefix):
    """Calls that are cancelled while they run, in both manners."""
    for manner, own_meta in [("greeted", None), ("newest", meta())]:
        with endless(stage) as line:
            if own_meta is None:
                greet(line, f"{prefix}/{manner}")
            line.ask(f"{prefix}/{manner}/quick", call(1, "list_roots", {}, own_meta))
            line.begin(f"{prefix}/{manner}/begins", call(2, "hash_file", HASH_ENDLESS, own_meta))
            line.tell(f"{prefix}/{manner}/another id", notification("notifications/cancelled", {"requestId": "2"}))
            own = {"requestId": 2, "reason": "enough"}
            line.tell(f"{prefix}/{manner}/cancelled", notification("notifications/cancelled", own))
            line.tell(f"{prefix}/{manner}/cancelled again", notification("notifications/cancelled", own))
            line.ask(f"{prefix}/{manner}/quick again", call(4, "list_roots", {}, own_meta))
            line.finish(f"{prefix}/{manner}/end")


def progress(stage, prefix):
    """Progress tokens of every form on quick calls."""
    tokens = {
        "number": 1, "zero": 0, "negative": -1, "text": "t", "empty": "", "float": 1.5, "whole float": 1.0,
        "null": None,
        "true": True, "list": [1], "object": {"a": 1}, "huge": 2**64,
    }
    with Stdio(stage) as line:
        greet(line, prefix)
        for word, token in tokens.items():
            line.ask(
                f"{prefix}/{word}",
                call(1, "stat_file", {"root": "workspace", "path": "hello.txt"}, {"progressToken": token})
            )
            line.ask(f"{prefix}/{word} on a list", request(1, "tools/list", {"cursor": "x"}, {"progressToken": token}))
    with Stdio(stage) as line:
        for word, token in tokens.items():
            own = meta(progressToken=token)
            line.ask(f"{prefix}/newest {word}", call(1, "stat_file", {"root": "workspace", "path": "hello.txt"}, own))


def long_lines(stage, prefix):
    """Lines around the largest size, and far beyond."""
    def padded(size, form):
        """A message of this size."""
        return form.replace("PAD", "x" * (size - len(form) + 3))

    forms = {
        "ping": '{"jsonrpc":"2.0","id":77,"method":"ping","params":{"x":"PAD"}}',
        "id at the end": '{"jsonrpc":"2.0","method":"ping","params":{"x":"PAD"},"id":"late"}',
        "no id": '{"jsonrpc":"2.0","method":"notifications/x","params":{"x":"PAD"}}',
        "answer": '{"jsonrpc":"2.0","id":7,"result":{"x":"PAD"}}', "not json": "xPAD",
        "float id": '{"id":1.5,"x":"PAD"}',
        "long id": '{"jsonrpc":"2.0","id":"PAD","method":"ping"}',
    }
    with Stdio(stage, server={"max_body_size": 2000}) as line:
        greet(line, prefix)
        for word, form in forms.items():
            for size in [1999, 2000, 2001, 5000, 300_000]:
                line.tell(f"{prefix}/{word} {size}", padded(size, form))
        line.ask(f"{prefix}/a call behind", call(2, "list_roots", {}))
        line.finish(f"{prefix}/end")


def line_ends(stage, prefix):
    """Other line ends, empty lines, and a last line without one."""
    with Stdio(stage) as line:
        line.ask(f"{prefix}/initialize crlf", initialize(1, "2025-11-25"), b"\r\n")
        line.tell(f"{prefix}/initialized crlf", INITIALIZED, b"\r\n")
        line.ask(f"{prefix}/call crlf", call(2, "list_roots", {}), b"\r\n")
        line.ask(f"{prefix}/call spaces", call(3, "list_roots", {}), b"   \n")
        for word, data in {
            "empty": b"", "cr": b"\r", "spaces": b"   ", "tabs": b"\t\t", "bom": b"\xef\xbb\xbf", "form feed": b"\x0c"
        }.items():
            line.tell(f"{prefix}/{word}", data)
        line.tell(f"{prefix}/three empty", b"\n\n")
        line.send(b'{"jsonrpc":"2.0",')
        line.answer_for(f"{prefix}/in two pieces", '"id":4,"method":"ping"}', 4)
        line.ask(f"{prefix}/spread out", '{ "jsonrpc" : "2.0" , "id" : 5 , "method" : "ping" }')
        line.send(b'{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"list_roots","arguments":{}}}')
        line.finish(f"{prefix}/last line without an end")
    with Stdio(stage) as line:
        greet(line, f"{prefix}/cut")
        line.send(b'{"jsonrpc":"2.0","id":6,"meth')
        line.finish(f"{prefix}/cut/last line cut")


def two_sets(stage, prefix):
    """Two tool sets on one connection."""
    with Stdio(stage, ["--toolset", "workspace,guide"]) as line:
        greet(line, prefix)
        line.ask(f"{prefix}/tools_list", request(1, "tools/list"))
        line.ask(f"{prefix}/list_roots", call(2, "list_roots", {}))
        line.ask(f"{prefix}/guide_cache_stats", call(3, "guide_cache_stats", {}))
        line.ask(f"{prefix}/guide_request_file", call(4, "guide_request_file", {"path": "docs/plan.md"}))
        line.ask(f"{prefix}/near tool", call(5, "guide_cache_stat", {}))
        line.finish(f"{prefix}/end")
    with Stdio(stage, ["--toolset", "guide,memory"]) as line:
        line.ask(f"{prefix}/guide and memory/discover", request(1, "server/discover", own_meta=meta()))
        line.ask(f"{prefix}/guide and memory/view", call(3, "view", {"path": "hello.txt"}, meta()))
        line.finish(f"{prefix}/guide and memory/end")
