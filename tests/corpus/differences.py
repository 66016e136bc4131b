"""Replies that are meant to differ from the recorded ones.

A list of rules: `reason` says why, `match` is a regular expression on the names of the exchanges that a rule is for, and
`rewrite` has pairs of a regular expression and its replacement, or a number to add to what was found. They make the new
reply from the recorded one, one rule after the other, in the form of `text_of`. An exchange that a rule changes passes
only with the new reply, and a rule that changes nothing fails the run.

A rule can have `leave_out` instead of `rewrite`: the name of a part of messages (see `PARTS`) that is replaced by a word in the
recorded reply and in the new one. It is for parts that changed everywhere and that other tests pin.
"""

import json
import re


class Differences:
    """The rules, and how often each was needed."""

    def __init__(self, path):
        self.occurred = 0
        self.rules = []
        if path is None:
            return
        with open(path, encoding="utf-8") as file:
            for rule in json.load(file):
                if set(rule) == {"match", "reason", "leave_out"}:
                    self.rules.append(LeftOut(rule))
                elif set(rule) == {"match", "reason", "rewrite"}:
                    self.rules.append(Rule(rule))
                else:
                    raise SystemExit(f"{path}: a rule has match, reason, and rewrite or leave_out: {rule}")

    def expected(self, name, recorded):
        """The text of the reply that is expected now, or nothing where the recorded one is."""
        before = text = text_of(recorded)
        for rule in self.rules:
            text = rule.apply(name, text)
        if text == before:
            return None
        self.occurred += 1
        return text

    def comparable(self, name, reply):
        """The text of a new reply, without the parts that are left out."""
        text = text_of(reply)
        for rule in self.rules:
            if isinstance(rule, LeftOut):
                text = rule.without(name, text)
        return text

    def stale(self):
        """The reasons of rules that were not needed."""
        return [rule.reason for rule in self.rules if not rule.count]

    def counts(self):
        """How often each reason was needed."""
        counts = {}
        for rule in self.rules:
            counts[rule.reason] = counts.get(rule.reason, 0) + rule.count
        return [(count, reason) for reason, count in counts.items()]


class Rule:
    """One way in which replies are meant to differ."""

    def __init__(self, rule):
        self.reason = rule["reason"]
        self.names = re.compile(rule["match"])
        self.pairs = [(re.compile(old), new) for old, new in rule["rewrite"]]
        self.count = 0

    def apply(self, name, text):
        """A text as this rule wants it."""
        if not self.names.search(name):
            return text
        after = text
        for old, new in self.pairs:
            # A whole number moves the number that was found.
            after = old.sub(new if isinstance(new, str) else lambda found: str(int(found[0]) + new), after)
        self.count += after != text
        return after


class LeftOut:
    """A part of messages that is not compared."""

    def __init__(self, rule):
        self.reason = rule["reason"]
        self.names = re.compile(rule["match"])
        self.leave_out = PARTS[rule["leave_out"]]
        self.count = 0

    def apply(self, name, text):
        """A recorded text without the part."""
        after = self.without(name, text)
        self.count += after != text
        return after

    def without(self, name, text):
        """A text without the part."""
        if not self.names.search(name):
            return text
        return "\n".join(map(self._line, text.split("\n")))

    def _line(self, line):
        at = line.find("{")
        if at < 0:
            return line
        try:
            message = json.loads(line[at:])
        except ValueError:
            return line
        if not isinstance(message, dict) or not isinstance(message.get("result"), dict):
            return line
        if not self.leave_out(message["result"]):
            return line
        return line[:at] + json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def without_text(result):
    """Leaves out the text of a tool's reply that did not fail."""
    blocks = result.get("content")
    if result.get("isError") is not False or not isinstance(blocks, list) or "structuredContent" not in result:
        return False
    texts = [block for block in blocks if block.get("type") == "text"]
    for block in texts:
        block["text"] = "<text>"
    return bool(texts)


def without_words(result):
    """Leaves out what a tool list and a greeting say to models: descriptions and schemas."""
    changed = "instructions" in result
    if changed:
        result["instructions"] = "<instructions>"
    for tool in result.get("tools", []):
        changed = True
        for key in ["description", "inputSchema", "outputSchema"]:
            if key in tool:
                tool[key] = f"<{key}>"
        tool.pop("_meta", None)
    return changed


def without_columns(result):
    """Leaves out the columns of matching lines, and says so where there was none yet."""
    structured = result.get("structuredContent")
    found = structured.get("matches") if isinstance(structured, dict) else None
    if not isinstance(found, list):
        return False
    lines = [line for match in found for line in match.get("matches", [match]) if "line_number" in line]
    for line in lines:
        rest = {key: line.pop(key) for key in list(line)}
        for key, value in rest.items():
            if key != "column":
                line[key] = value
            if key == "line_number":
                line["column"] = "<column>"
    return bool(lines)


PARTS = {"text": without_text, "words": without_words, "columns": without_columns}


def text_of(reply):
    """A reply as one text: what stands before the body or the lines of stdio, an empty line, and those."""
    headers = dict(reply.get("headers", {}))
    before = []
    if "status" in reply:
        before = [f"status: {reply['status']}", f"framing: {framing(headers)}"]
    before += [f"{name}: {headers[name]}" for name in sorted(headers)]
    rest = {key: value for key, value in reply.items() if key not in ("status", "headers", "body", "lines")}
    before += [f"{key}= {json.dumps(rest[key], ensure_ascii=False)}" for key in sorted(rest)]
    body = reply.get("body") or "\n".join(reply.get("lines", []))
    return "".join(line + "\n" for line in before) + "\n" + body


def framing(headers):
    """How the length of a body is told. The length itself follows from the body, so it leaves the headers."""
    chunked, length = headers.pop("transfer-encoding", None), headers.pop("content-length", None)
    return chunked or ("none" if length is None else "length")
