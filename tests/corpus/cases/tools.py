"""Every tool with every argument in every odd form: over stdio by type, over HTTP by path."""

from cases.table import GUIDE_PATHS, ODDITIES, PATHS, SETS
from ground import Ground
from messages import (
    LEFT_OUT, NEWEST, REVISIONS, UNKNOWN, call, greet, headers, initialize, meta, newest_headers, request,
)
from wire import Http, Stdio

# Tools whose further calls are made over HTTP as well: large and binary files, questions, changes.
AGAIN = ["read_file", "write_file", "grep", "read", "view", "guide_read_file", "guide_request_file"]

# Tools that are given large files.
LARGE = ["read_file", "hash_file", "read", "view"]


def scenes():
    """One scene a tool and transport, and one a set and revision."""
    for name, tools in SETS.items():
        for tool, own in tools.items():
            yield f"stdio/tools/{name}/{tool}", by_type(name, tool, own)
            yield f"http/tools/{name}/{tool}", by_path(name, tool, own)
        # One set is enough for most revisions: the tools know nothing of them.
        for revision in [*REVISIONS, *UNKNOWN] if name == "workspace" else REVISIONS[-1:]:
            some = dict(list(tools.items())[:3]) if revision in UNKNOWN else tools
            yield f"stdio/revision/{revision}/{name}", revision_on_stdio(name, some, revision)
            yield f"http/revision/{revision}/{name}", revision_on_http(name, some, revision)
        yield f"stdio/revision/{NEWEST}/{name}", newest_on_stdio(name, tools)
        yield f"http/revision/{NEWEST}/{name}", newest_on_http(name, tools)


def odd_arguments(tool):
    """Calls with one argument that is odd, missing, unknown or misspelled."""
    for argument, kind in tool.arguments.items():
        for word, value in ODDITIES[kind].items():
            yield f"{argument}={word}", {**tool.base, argument: value}
        if argument in tool.base:
            yield f"{argument} missing", {key: value for key, value in tool.base.items() if key != argument}
    yield "unknown argument", {**tool.base, "unknown": True}
    if tool.base:
        first, *rest = tool.base
        yield "misspelled argument", {
            first[:-1] + "_" + first[-1:]: tool.base[first], **{key: tool.base[key] for key in rest}
        }


def odd_wholes(tool):
    """Arguments that are no object, and none."""
    words = {"null": None, "list": [tool.base], "text": "x", "missing": LEFT_OUT, "empty": {}}
    for word, value in words.items():
        yield f"arguments={word}", value


def by_type(name, tool, own):
    """A scene over stdio, revision 2025-11-25."""

    def scene(stage, prefix):
        with Ground(tool in LARGE) as ground, Stdio(stage, ground=ground, toolsets=[name]) as line:
            greet(line, prefix)
            calls = [("base", own.base), *((f"good/{number:02}", good) for number, good in enumerate(own.good, 1))]
            calls += odd_arguments(own)
            # Without arguments it would wait, and end when the scene does.
            calls += odd_wholes(own) if tool != "watch" else ()
            for number, (word, arguments) in enumerate(calls, 1):
                line.ask(f"{prefix}/{word}", call(number, tool, arguments))
            line.ask(f"{prefix}/progress number", call(90001, tool, own.base, {"progressToken": 7}))
            line.ask(f"{prefix}/extra params", call(90002, tool, own.base, task={"ttl": 1}, more=1))
            line.finish(f"{prefix}/end")

    return scene


def by_path(name, tool, own):
    """A scene over HTTP, the newest revision."""
    paths = GUIDE_PATHS if name == "guide" else PATHS

    def scene(stage, prefix):
        with Ground(tool in LARGE) as ground, Http(stage, ground=ground, toolsets=[name]) as http:
            def ask(word, arguments, **more):
                message = call(1, tool, arguments, meta(), **more)
                http.request(f"{prefix}/{word}", "POST", "/mcp", newest_headers(message), message)

            ask("base", own.base)
            for number, good in enumerate(own.good if tool in AGAIN else [], 1):
                ask(f"good/{number:02}", good)
            for argument, kind in own.arguments.items():
                for word, path in paths.items() if kind == "path" else ():
                    ask(f"{argument}={word}", {**own.base, argument: path})
            if tool in (next(iter(SETS[name])), "read_file", "guide_request_file"):
                for word, value in odd_wholes(own):
                    ask(word, value)

    return scene


def without_greeting(prefix, ask, tools, own_meta=None):
    """What is asked in every revision: the list, a good call of each tool, one that fails and one of a tool nobody has."""
    ask(f"{prefix}/tools_list", request(1, "tools/list", own_meta=own_meta))
    for tool, own in tools.items():
        ask(f"{prefix}/{tool}", call(2, tool, own.base, own_meta))
    ask(f"{prefix}/refused", call(3, list(tools)[-1], {"nonsense": 1}, own_meta))
    ask(f"{prefix}/not an object", call(4, list(tools)[-1], [1], own_meta))
    ask(f"{prefix}/unknown tool", call(5, "no_such_tool", {}, own_meta))
    ask(f"{prefix}/near tool", call(6, list(tools)[0] + "x", {}, own_meta))


def revision_on_stdio(name, tools, revision):
    """A scene that begins with initialize and this revision."""

    def scene(stage, prefix):
        with Stdio(stage, toolsets=[name]) as line:
            greet(line, prefix, revision)
            without_greeting(prefix, line.ask, tools)
            line.finish(f"{prefix}/end")

    return scene


def newest_on_stdio(name, tools):
    """A scene whose requests each introduce the client."""

    def scene(stage, prefix):
        with Stdio(stage, toolsets=[name]) as line:
            line.ask(f"{prefix}/discover", request(0, "server/discover", own_meta=meta()))
            without_greeting(prefix, line.ask, tools, meta())
            line.finish(f"{prefix}/end")
        with Stdio(stage, toolsets=[name]) as line:
            greet(line, f"{prefix}/greeted", NEWEST)
            line.ask(f"{prefix}/greeted/tools_list", request(1, "tools/list"))
            line.ask(f"{prefix}/greeted/tools_list with meta", request(2, "tools/list", own_meta=meta()))

    return scene


def revision_on_http(name, tools, revision):
    """A scene with this revision in the header, without a session where the set can do so."""

    def scene(stage, prefix):
        with Http(stage, toolsets=[name], server={"sessions": "off"}) as http:
            first = initialize(0, revision)
            http.request(f"{prefix}/initialize", "POST", "/mcp", headers(), first)
            http.request(f"{prefix}/initialize with header", "POST", "/mcp", headers(revision), first)

            def ask(word, message):
                http.request(word, "POST", "/mcp", headers(revision), message)

            without_greeting(prefix, ask, tools)

    return scene


def newest_on_http(name, tools):
    """A scene of the newest revision."""

    def scene(stage, prefix):
        with Http(stage, toolsets=[name]) as http:
            def ask(word, message):
                http.request(word, "POST", "/mcp", newest_headers(message), message)

            ask(f"{prefix}/discover", request(0, "server/discover", own_meta=meta()))
            without_greeting(prefix, ask, tools, meta())

    return scene
