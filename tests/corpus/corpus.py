#!/usr/bin/env python3
"""Records every reply of a server to a corpus of requests, and compares those of another one byte for byte.

usage: corpus.py record BINARY FILE
       corpus.py compare BINARY FILE [--differences FILE]
"""

import argparse
import importlib
import os
import sys
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True

import fixture  # noqa: E402
from differences import Differences  # noqa: E402

MODULES = ["stdio", "http", "sessions", "guide", "settings", "conformance", "tools"]
WORKERS = 3
# In these scenes a question is withdrawn as its call ends. Whether it is still told is a race, and both are right.
RACING = ["guide/stdio cancelled", "guide/stdio handover", "guide/stdio timeout", "guide/session cancelled"]


class Stage:
    """Where one scene is played: the binary, and what was said."""

    def __init__(self, binary):
        self.binary = binary
        self.exchanges = []

    def add(self, name, request, reply):
        """Takes an exchange."""
        self.exchanges.append((name, request, reply))


def play(binary, scene):
    """Plays one scene: what was said, and what went wrong."""
    name, function = scene
    stage = Stage(binary)
    try:
        function(stage, name)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other scenes go on
        return stage.exchanges, f"failed: {name}: {type(error).__name__}: {error}"
    return stage.exchanges, None


def played(binary, wanted=""):
    """Plays all scenes: the exchanges in their order, and the scenes that did not come to their end."""
    modules = [importlib.import_module(f"cases.{name}") for name in MODULES]
    scenes = [scene for module in modules for scene in module.scenes() if scene[0].startswith(wanted)]
    with ThreadPoolExecutor(WORKERS) as pool:
        results = list(pool.map(lambda scene: play(binary, scene), scenes))
    exchanges = [exchange for said, _ in results for exchange in said]
    failures = [failure for _, failure in results if failure]
    names = set()
    for name, _, _ in exchanges:
        if name in names:
            failures.append(f"failed: {name}: this name is used twice")
        names.add(name)
    return exchanges, failures


def record(binary, path, wanted):
    """Writes what a binary answers."""
    exchanges, failures = played(binary, wanted)
    if failures:
        print("\n".join(failures))
        return 1
    fixture.save(path, exchanges)
    print(f"{len(exchanges)} exchanges, {os.path.getsize(path)} bytes")
    return 0


def compare(binary, path, differences_path, wanted):
    """Compares what a binary answers with what was recorded."""
    recording = fixture.Recording(path)
    differences = Differences(differences_path)
    exchanges, troubles = played(binary, wanted)
    different = judged_all(exchanges, recording, differences)
    for scene in RACING:
        if any(is_of(name, scene) for name in different):
            again, failures = played(binary, scene)
            troubles += failures
            different = {name: trouble for name, trouble in different.items() if not is_of(name, scene)}
            different |= judged_all(again, recording, differences)
    troubles += [f"different: {name}\n{trouble}" for name, trouble in different.items()]
    said = {name for name, _, _ in exchanges}
    troubles += [f"missing: {name}" for name in recording.exchanges if name not in said and name.startswith(wanted)]
    if not wanted:
        troubles += [f"stale: an intended difference does not occur: {reason}" for reason in differences.stale()]
    for trouble in troubles:
        print(trouble + "\n")
    for count, reason in differences.counts():
        print(f"{count:5} × {reason}")
    print(f"{differences.occurred} intended differences")
    print(f"{len(said - set(different))} passed, {len(troubles)} failed")
    return 1 if troubles else 0


def is_of(name, scene):
    """Whether an exchange belongs to a scene."""
    return name.startswith(f"{scene}/")


def judged_all(exchanges, recording, differences):
    """The exchanges that are wrong, and what is wrong with them."""
    troubles = {name: judged(name, request, reply, recording, differences) for name, request, reply in exchanges}
    return {name: trouble for name, trouble in troubles.items() if trouble is not None}


def judged(name, request, reply, recording, differences):
    """What is wrong with an exchange, or nothing."""
    if name not in recording.exchanges:
        return "  it was not recorded"
    recorded_request, recorded_reply = recording.exchanges[name]
    if fixture.encoded_request(request) != recorded_request:
        shown = shown_difference(recording.decoded(recorded_request), request)
        return f"  the request is not the recorded one; record anew\n{shown}"
    recorded = recording.decoded(recorded_reply)
    expected = differences.expected(name, recorded)
    if expected is None:
        if fixture.encoded(reply) == recorded_reply:
            return None
        expected = recorded
    else:
        reply = differences.comparable(name, reply)
        if reply == expected:
            return None
    return f"  request:  {cut(text_of(request), 0)}\n{shown_difference(expected, reply)}"


def text_of(value):
    """A request or reply in one line."""
    if isinstance(value, dict):
        return "  ".join(f"{key}={text_of(one)}" for key, one in value.items())
    if isinstance(value, list):
        return " ".join(f"[{text_of(one)}]" for one in value)
    return str(value).replace("\r", "\\r").replace("\n", "\\n")


def shown_difference(expected, got):
    """Two values, from a little before where they differ."""
    expected, got = text_of(expected), text_of(got)
    common = len(os.path.commonprefix([expected, got]))
    return f"  expected: {cut(expected, common)}\n  got:      {cut(got, common)}"


def cut(text, place, before=120, behind=400):
    """The surroundings of a place in a text."""
    begin, end = max(place - before, 0), place + behind
    text = ("…" if begin else "") + text[begin:end] + ("…" if len(text) > end else "")
    return text.encode("utf-8", "backslashreplace").decode()


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ["record", "compare"]:
        command = commands.add_parser(name)
        command.add_argument("binary", type=os.path.realpath)
        command.add_argument("file")
        command.add_argument("--only", default="", help="only scenes whose name begins so")
    command.add_argument("--differences", help="a file of intended differences")
    options = parser.parse_args()
    if options.command == "record":
        return record(options.binary, options.file, options.only)
    return compare(options.binary, options.file, options.differences, options.only)


if __name__ == "__main__":
    sys.exit(main())
