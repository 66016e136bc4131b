"""What truly differs from run to run, replaced by fixed words. Everything else stays byte for byte."""

import re
import time
from datetime import datetime, timezone

# Times this near are of the run itself; the fixed times of the files lie decades before.
NEAR = 2 * 24 * 3600

ISO_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
EPOCH = re.compile(r"(?<![\w.-])1[789]\d{8}(?:\.\d+)?(?![\w.-])")

# Quotes in a text that is itself a JSON string have backslashes before them.
RULES = [
    # Sessions.
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<uuid>"),
    # What clients carry for the server, sealed.
    (re.compile(r"(FILE|DIRECTORY) [0-9a-f]{8} "), r"\1 <marker> "),
    (re.compile(r"\brs\d+\.[A-Za-z0-9_=-]{8,}(?:\.[A-Za-z0-9_=-]+)*"), "<state>"),
    # When a file was read last is up to how the disk is mounted.
    (re.compile(r'(accessed\\*":\\*")[^"\\]+'), r"\1<time>"),
    # How much was answered: some of it is times, which have more or fewer digits.
    (re.compile(r"(mcp_filesystem_response_bytes_total\{[^}]*\}) \d+"), r"\1 <bytes>"),
    # A file's version is made of its number and times, or of its content while it is young.
    (re.compile(r'(version\\*":\\*")[hs][A-Za-z0-9_-]{8}(?![A-Za-z0-9_-])'), r"\1<version>"),
    (re.compile(r"(version )[hs][A-Za-z0-9_-]{8}(?=[\]\\\s,;])"), r"\1<version>"),
    (re.compile(r"(process_(?:resident_memory_bytes|cpu_seconds_total)) [0-9.e+]+"), r"\1 <measured>"),
    # Who runs this.
    (re.compile(r'(owner\\*":\\*")[^"\\]+'), r"\1<owner>"),
    (re.compile(r'(group\\*":\\*")[^"\\]+'), r"\1<group>"),
    # How large a directory is depends on the file system.
    (re.compile(r'(type\\*":\\*"directory\\*",\\*"size\\*":)\d+'), r"\1<size>"),
    (re.compile(r"(type: directory\\+nsize: )\d+"), r"\1<size>"),
    # Reading sets it.
    (re.compile(r"(accessed: )\d[^\\\s]*Z"), r"\1<time>"),
    # The reference server's way to write times.
    (re.compile(r"((?:created|accessed): )\w{3} \w{3} \d\d \d{4} [\d:]+ GMT"), r"\1<time> GMT"),
    # When a change was made today.
    (re.compile(r"(?<![\dT])\d\d:\d\d:\d\dZ"), "<clock>"),
    # Whether an answer that was carried twice is found in the cache depends on how soon it comes again.
    (re.compile(r'(hits\\*":)\d+(?=,\\*"misses)'), r"\1<hits>"),
    # How long something took or takes.
    (re.compile(r"(call_duration_seconds_(?:bucket|sum)\{[^}]*\}) [0-9.e-]+"), r"\1 <duration>"),
    (re.compile(r"(try again in )\d+"), r"\1<wait>"),
    (re.compile(r'(retry_after_ms\\*":)\d+'), r"\1<wait>"),
]


class Normaliser:
    """Knows what is particular to one server process."""

    def __init__(self, directory):
        self.directory = directory
        self.port = None
        self.now = time.time()

    def value(self, value):
        """Normalises every text in a value."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if isinstance(value, dict):
            return {key: self.value(one) for key, one in value.items()}
        return value

    def text(self, text):
        """Normalises one text."""
        text = text.replace(self.directory, "<directory>")
        if self.port is not None:
            text = re.sub(rf":{self.port}\b", ":<port>", text)
        for pattern, replacement in RULES:
            text = pattern.sub(replacement, text)
        text = ISO_TIME.sub(self._iso, text)
        return EPOCH.sub(self._epoch, text)

    def _iso(self, found):
        try:
            moment = datetime.fromisoformat(found[0].replace("Z", "+00:00"))
        except ValueError:
            return found[0]
        is_near = abs(moment.astimezone(timezone.utc).timestamp() - self.now) < NEAR
        return "<time>" if is_near else found[0]

    def _epoch(self, found):
        return "<epoch>" if abs(float(found[0]) - self.now) < NEAR else found[0]
