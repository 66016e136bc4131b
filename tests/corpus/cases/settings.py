"""What the operator decides and a client sees, and the commands that print what clients see."""

import subprocess

from cases.table import SETS
from fixture import key_of
from ground import Ground
from messages import call, greet, headers, meta, newest_headers, request
from normal import Normaliser
from wire import PATIENCE, Http, Stdio

READ = {"root": "workspace", "path": "hello.txt"}


def scenes():
    """The scenes, by name."""
    for replies in ["text", "structured", "both"]:
        yield f"settings/replies {replies}", replies_of(replies)
    yield "settings/no root header", no_root_header
    yield "settings/rate", rate
    yield "settings/small", small
    yield "settings/read only", read_only
    yield "settings/one directory", one_directory
    yield "settings/commands", commands


def replies_of(replies):
    """A scene with one half of every reply, or both."""

    def scene(stage, prefix):
        calls = {
            "list_roots": call(1, "list_roots", {}), "read": call(2, "read_file", READ),
            "fails": call(3, "read_file", {**READ, "path": "no"}),
            "refused": call(4, "read_file", {}), "misread": call(5, "read_file", [1]), "list": request(6, "tools/list"),
        }
        with Stdio(stage, server={"replies": replies}) as line:
            greet(line, f"{prefix}/stdio")
            for word, message in calls.items():
                line.ask(f"{prefix}/stdio/{word}", message)
        with Http(stage, server={"replies": replies}) as http:
            for word, message in calls.items():
                http.post(f"{prefix}/http/{word}", message, headers("2025-06-18"))
                params = {**message.get("params", {}), "_meta": meta()}
                newest = {**message, "params": params}
                http.post(f"{prefix}/http/newest {word}", newest, newest_headers(newest))
        with Http(stage, server={"replies": replies}, toolsets=["guide"]) as http:
            for tool in ["guide_cache_stats", "guide_request_file"]:
                message = call(1, tool, SETS["guide"][tool].base, meta())
                http.post(f"{prefix}/http/{tool}", message, newest_headers(message))

    return scene


def no_root_header(stage, prefix):
    """The root is not asked for as a header."""
    with Http(stage, server={"root_header": False}) as http:
        message = request(1, "tools/list", own_meta=meta())
        http.post(f"{prefix}/list", message, newest_headers(message))
        message = call(1, "read_file", READ, meta())
        for word, own in {"right": ["workspace"], "wrong": ["second"], "none": []}.items():
            pairs = [
                ("Mcp-Method", "tools/call"), ("Mcp-Name", "read_file"), *(("Mcp-Param-Root", value) for value in own)
            ]
            http.post(f"{prefix}/{word}", message, headers("2026-07-28", *pairs))


def rate(stage, prefix):
    """More calls than a client may make."""
    limits = {"rate": {"per_second": 1, "burst": 1}}
    with Stdio(stage, limits=limits) as line:
        greet(line, f"{prefix}/stdio")
        for number in range(3):
            line.ask(f"{prefix}/stdio/{number}", call(number, "list_roots", {}))
        line.ask(f"{prefix}/stdio/list", request(9, "tools/list", {"cursor": "x"}))
    with Http(stage, limits=limits) as http:
        for number in range(3):
            http.post(f"{prefix}/http/{number}", call(number, "list_roots", {}), headers("2025-11-25"))


def small(stage, prefix):
    """Small limits on what is read."""
    with Stdio(stage, max_full_read_size=1000, limits={"max_file_size": 2000}) as line:
        greet(line, prefix)
        line.ask(f"{prefix}/whole", call(1, "read_file", {"root": "workspace", "path": "large.txt"}))
        line.ask(
            f"{prefix}/lines", call(2, "read_file", {"root": "workspace", "path": "large.txt", "limit_lines": 1000})
        )
        line.ask(
            f"{prefix}/bytes",
            call(3, "read_file", {"root": "workspace", "path": "large.txt", "offset_bytes": 5, "limit_bytes": 5000})
        )


def read_only(stage, prefix):
    """Nothing may be changed anywhere: fewer tools are listed."""
    with Ground() as ground:
        roots = [{"name": "fixed", "path": ground.join("fixed"), "allowed_tools": ["*"], "read_only": True}]
        with Stdio(stage, ground=ground, roots=roots) as line:
            greet(line, prefix)
            line.ask(f"{prefix}/list", request(1, "tools/list"))
            line.ask(f"{prefix}/write", call(2, "write_file", {"root": "fixed", "path": "x", "content": "x"}))
            line.ask(f"{prefix}/near tool", call(3, "write_files", {}))


def one_directory(stage, prefix):
    """A directory on the command line instead of the roots of the file."""
    with Ground() as ground, Stdio(stage, [ground.join("second")], ground=ground) as line:
        greet(line, prefix)
        line.ask(f"{prefix}/list_roots", call(1, "list_roots", {}))
        line.ask(f"{prefix}/list_folder", call(2, "list_folder", {"root": "second", "path": "."}))


def commands(stage, prefix):
    """The commands that print the tools, or call one."""
    with Ground() as ground:
        run_all(stage, prefix, ground)


def run_all(stage, prefix, ground):
    """Runs each command to its end."""
    config = ground.config()
    normal = Normaliser(ground.path)
    lines = {f"tools {name}": ["tools", "--toolset", name, "--format", "json"] for name in SETS} | {
        "call list_roots": ["--config", config, "call", "list_roots"],
        "call read_file": ["--config", config, "call", "read_file", '{"root":"workspace","path":"hello.txt"}'],
        "call missing": ["--config", config, "call", "read_file", '{"root":"workspace","path":"no"}'],
        "call refused": ["--config", config, "call", "read_file", "{}"],
        "call unknown": ["--config", config, "call", "nothing", "{}"],
        "call list": ["--config", config, "call", "read_file", "[]"],
        "call garbage": ["--config", config, "call", "read_file", "{"],
        "call guide": [
            "--config", config, "--toolset", "guide", "call", "guide_request_file", '{"path":"docs/plan.md"}'
        ],
        "version": ["--version"],
    }
    for word, line in lines.items():
        ended = subprocess.run(
            [stage.binary, *line], capture_output=True, text=True, timeout=PATIENCE, check=False,
            stdin=subprocess.DEVNULL,
            cwd=ground.join("empty"),
        )
        output = ended.stdout if len(ended.stdout) < 5000 else f"{len(ended.stdout)} characters, {key_of(ended.stdout)}"
        reply = {"exit": ended.returncode, "output": output}
        stage.add(f"{prefix}/{word}", {"command": normal.value(line)}, normal.value(reply))
