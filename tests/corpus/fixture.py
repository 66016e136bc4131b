"""The file of recorded exchanges: one JSON line each, with a name, the request and the normalised reply.

A long text that was there before is `{"head": …, "#": key, "tail": …}`: its first part up to where a result begins,
the key of what follows, and the end of an event where it is the text of a stream. Of a very long text `length`,
`begin` and `end` are kept instead; its key is a hash of all of it. The same goes for long requests, because they are
made anew for each run.
"""

import hashlib
import json
import re

# Texts of a reply up to this many characters are written out wherever they stand.
SHORT = 200
# Texts of a reply of more characters are not kept whole.
LONG = 60_000
# The same for requests; what is shorter is written out.
LONG_REQUEST = 1000
# How much of them is kept at either end.
SHOWN = 150
# Where a result or a question begins that others have as well.
RESULT = re.compile(r'"result":\{(?:"resultType":"[a-z_]+",)?|"progressToken":\d+\},')
# How an event of a stream ends.
EVENT_END = re.compile(r"(?:\nid: [^\n]*)?\n\n\Z")


def key_of(text):
    """What a long text is known by."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def split(text):
    """The part up to where a result begins, what follows, and how an event ends; what is not there is empty."""
    found = RESULT.search(text, 0, SHORT)
    begin = found.end() if found else 0
    found = EVENT_END.search(text, begin)
    end = found.start() if found else len(text)
    return text[:begin], text[begin:end], text[end:]


def each_text(value, change):
    """A value with every text changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [each_text(one, change) for one in value]
    if isinstance(value, dict):
        return {name: each_text(one, change) for name, one in value.items()}
    return value


def reference(text):
    """A long text by its key."""
    head, rest, tail = split(text)
    result = {"head": head, "#": key_of(rest), "tail": tail}
    return {name: one for name, one in result.items() if one}


def encoded(value, short=SHORT):
    """A value with its long texts as keys. Two values are the same where these are equal."""
    return each_text(value, lambda text: text if len(text) <= short else reference(text))


def encoded_request(request):
    """A request with its long texts as keys."""
    return encoded(request, LONG_REQUEST)


def save(path, exchanges):
    """Writes exchanges, each a name, a request and a reply."""
    seen = set()

    def stored(text, short, long):
        if len(text) <= short:
            return text
        result = reference(text)
        if result["#"] in seen:
            return result
        seen.add(result["#"])
        if len(text) <= long:
            return text
        return {**result, "length": len(text), "begin": text[:SHOWN], "end": text[-SHOWN:]}

    with open(path, "w", encoding="utf-8") as file:
        for name, request, reply in exchanges:
            request = each_text(request, lambda text: stored(text, LONG_REQUEST, LONG_REQUEST))
            reply = each_text(reply, lambda text: stored(text, SHORT, LONG))
            line = {"name": name, "request": request, "reply": reply}
            file.write(json.dumps(line, separators=(",", ":")) + "\n")


class Recording:
    """Exchanges as they were read from a file, in the form that `encoded` gives."""

    def __init__(self, path):
        self.texts = {}
        self.exchanges = {}
        with open(path, encoding="utf-8") as file:
            for line in map(json.loads, file):
                request, reply = self._taken(line["request"]), self._taken(line["reply"])
                self.exchanges[line["name"]] = (encoded_request(request), encoded(reply))

    def _taken(self, value):
        """Takes note of the long texts in a value that was read."""
        if isinstance(value, str) and len(value) > SHORT:
            rest = split(value)[1]
            self.texts[key_of(rest)] = rest
        if isinstance(value, list):
            return [self._taken(one) for one in value]
        if not isinstance(value, dict):
            return value
        if "length" in value:
            missing = f"… {value['length']} characters, {value['#']} …"
            self.texts[value["#"]] = value["begin"] + missing + value["end"]
        return {name: self._taken(one) for name, one in value.items() if name not in ("length", "begin", "end")}

    def decoded(self, value):
        """A value with its texts written out, for people and for changes by an intended difference."""
        if isinstance(value, list):
            return [self.decoded(one) for one in value]
        if not isinstance(value, dict):
            return value
        if "#" in value:
            return value.get("head", "") + self.texts[value["#"]] + value.get("tail", "")
        return {name: self.decoded(one) for name, one in value.items()}
