"""Replies that are meant to differ from the recorded ones.

A list of objects: `match` is a regular expression on the exchange's name, `reason` says why, and either
`expected` has the new reply or parts of it (a header of null is one that is gone), or `rewrite` has pairs of a
regular expression and its replacement, which make the new reply from the recorded one. With neither, any other reply
will do. The length of a new body need not be given.
"""

import json
import re

KEYS = {"match", "reason", "expected", "rewrite"}


class Differences:
    """The intended differences, and which of them occurred."""

    def __init__(self, path, recording):
        self.recording = recording
        self.occurred = 0
        self.entries = []
        if path is None:
            return
        with open(path, encoding="utf-8") as file:
            for entry in json.load(file):
                if not entry.get("reason") or set(entry) - KEYS:
                    raise SystemExit(f"{path}: an entry has match, reason, and expected or rewrite: {entry}")
                self.entries.append({**entry, "pattern": re.compile(entry["match"]), "count": 0})

    def expected(self, name, reply):
        """The reply that is meant instead of the recorded one; none where the recorded one is meant."""
        recorded = self.recording.decoded(self.recording.exchanges[name][1])
        for entry in self.entries:
            if not entry["pattern"].search(name):
                continue
            meant = with_length(self._meant(entry, recorded, reply), recorded)
            if meant == recorded:
                continue
            entry["count"] += reply != recorded
            self.occurred += meant == reply
            return meant
        return None

    def _meant(self, entry, recorded, reply):
        if "expected" in entry:
            return merged(recorded, entry["expected"])
        if "rewrite" in entry:
            return rewritten(recorded, entry["rewrite"])
        return reply

    def stale(self):
        """Those that did not occur."""
        return [entry["match"] for entry in self.entries if not entry["count"]]


def with_length(meant, recorded):
    """A reply with the length that its new body has."""
    if "body" not in meant or length_of(recorded) != recorded.get("headers", {}).get("content-length"):
        return meant
    if meant["headers"].get("content-length") != recorded["headers"]["content-length"]:
        return meant
    return {**meant, "headers": {**meant["headers"], "content-length": length_of(meant)}}


def length_of(reply):
    """How many bytes a reply's body has."""
    return str(len(reply.get("body", "").encode("utf-8", "surrogateescape")))


def merged(recorded, parts):
    """The recorded reply with some parts replaced."""
    result = {**recorded, **parts}
    if "headers" in parts:
        headers = {**recorded.get("headers", {}), **parts["headers"]}
        result["headers"] = {name: headers[name] for name in sorted(headers) if headers[name] is not None}
    return {name: value for name, value in result.items() if value is not None or name in recorded}


def rewritten(value, pairs):
    """A value with all its texts rewritten."""
    if isinstance(value, str):
        for pattern, replacement in pairs:
            value = re.sub(pattern, replacement, value)
        return value
    if isinstance(value, list):
        return [rewritten(one, pairs) for one in value]
    if isinstance(value, dict):
        return {name: rewritten(one, pairs) for name, one in value.items()}
    return value
