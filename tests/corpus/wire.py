"""A server process, and the two ways to talk to it: lines on standard input and output, and HTTP on a loopback port."""

import json
import os
import re
import select
import signal
import socket
import subprocess
import time

from ground import Ground
from messages import shortened, shortened_headers
from normal import Normaliser

# How long an answer may take before it counts as missing.
PATIENCE = 5.0
# How long a server may take to start.
START = 20.0
# How long an answer may take that is not sure to come.
MOMENT = 1.0
# How long nothing may come on a stream that stays open until it counts as all there is.
QUIET = 0.4
# How often a server may leave a scene without an answer before it is given up.
MOST_SILENCES = 5
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Variables that would change what the server does.
VARIABLES = [
    "MCP_FILESYSTEM_CONFIG", "FS_SERVER_ROOT", "FS_MAX_FILE_SIZE", "FS_REQUEST_TIMEOUT", "FS_LOG_LEVEL", "BASE_PATH",
    "RUST_LOG", "RUST_BACKTRACE",
]


def written(message):
    """A message as it goes over the wire. Bytes and text go as they are."""
    if isinstance(message, bytes):
        return message
    if not isinstance(message, str):
        message = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return message.encode("utf-8", "surrogatepass")


def is_called(reply):
    """Tells whether a reply is a stream with an answer."""
    return reply["headers"].get("content-type") == "text/event-stream" and '"jsonrpc":' in reply["body"]


def readable(data):
    """Bytes as text that can be made bytes again."""
    return data.decode("utf-8", "surrogateescape")


def parsed(data):
    """A message that is a JSON object, or else nothing."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


class Process:
    """A running server, on a ground of its own unless one is given."""

    def __init__(self, stage, transport, arguments=(), ground=None, **config):
        self.stage = stage
        self.own_ground = None if ground else Ground()
        self.ground = ground or self.own_ground
        self.log = self.ground.join("log")
        words = ["--config", self.ground.config(**config), "--transport", transport, *arguments]
        environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        environment["XDG_STATE_HOME"] = self.ground.join("state")
        with open(self.log, "wb") as log:
            self.child = subprocess.Popen(
                [stage.binary, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                cwd=self.ground.join("empty"), env=environment,
            )
        self.normal = Normaliser(self.ground.path)
        self.silences = 0

    def was_silent(self):
        """Takes note that an answer did not come."""
        self.silences += 1
        if self.silences >= MOST_SILENCES:
            raise RuntimeError(f"the server left {MOST_SILENCES} requests without an answer")

    def record(self, name, request, reply):
        """Adds an exchange to what is recorded."""
        self.stage.add(name, self.normal.value(request), self.normal.value(reply))

    def close(self):
        """Ends the process, and removes its own ground."""
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGKILL)
        self.child.wait()
        for pipe in (self.child.stdin, self.child.stdout):
            try:
                pipe.close()
            except OSError:
                pass
        if self.own_ground:
            self.own_ground.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Stdio(Process):
    """A server on standard input and output."""

    def __init__(self, stage, arguments=(), **config):
        super().__init__(stage, "stdio", arguments, **config)
        self.buffer = b""
        self.ended = False
        self.sentinels = 0

    def send(self, data):
        """Writes bytes. A server that hung up is seen by whoever reads next."""
        try:
            self.child.stdin.write(data)
            self.child.stdin.flush()
        except OSError:
            pass

    def line(self, deadline):
        """The next line without its end; none when time or the output ended."""
        while b"\n" not in self.buffer and not self.ended:
            rest = deadline - time.monotonic()
            if rest <= 0 or not select.select([self.child.stdout], [], [], rest)[0]:
                return None
            piece = os.read(self.child.stdout.fileno(), 1 << 20)
            self.ended = not piece
            self.buffer += piece
        line, end, self.buffer = self.buffer.partition(b"\n")
        return line if line or end else None

    def until(self, is_last, patience=PATIENCE):
        """The lines up to one that `is_last`."""
        deadline = time.monotonic() + patience
        lines = []
        while (line := self.line(deadline)) is not None:
            lines.append(line)
            if is_last(parsed(line)):
                return lines
        if not self.ended:
            self.was_silent()
        return lines

    def reply(self, lines):
        """What came, as it is recorded."""
        reply = {"lines": [readable(line) for line in lines]}
        if self.ended:
            reply["closed"] = True
        return reply

    def exchange(self, name, message, is_last, then=b"\n"):
        """Sends a message and records what comes up to one that `is_last`; gives that back."""
        data = written(message)
        self.send(data + then)
        lines = self.until(is_last)
        self.record_lines(name, data, lines)
        return parsed(lines[-1]) if lines else None

    def record_lines(self, name, data, lines):
        """Records a line that was sent, and those that came."""
        self.record(name, {"line": shortened(readable(data))}, self.reply(lines))

    def ask(self, name, message, then=b"\n"):
        """Sends a request and records everything up to its answer."""
        return self.exchange(name, message, answers(parsed(written(message))), then)

    def ask_for(self, name, message, method):
        """Sends a message and records everything up to the server's own request or notification of a method."""
        return self.exchange(name, message, has_method(method))

    def answer_for(self, name, message, own_id):
        """Sends an answer to the server's question and records everything up to the answer to our own request."""
        return self.exchange(name, message, answers({"id": own_id}))

    def answer_or_question(self, name, message, own_id, method):
        """Like `answer_for`, also up to a further question of the server's."""
        is_answer, is_question = answers({"id": own_id}), has_method(method)
        return self.exchange(name, message, lambda came: is_answer(came) or is_question(came))

    def ask_all(self, name, message, wanted):
        """Sends a message and records what comes until all that is wanted was there, in a fixed order.

        What is wanted are ids of answers, `None` for an answer without one, and methods of the server's own messages.
        """
        data = written(message)
        self.send(data + b"\n")
        left = set(wanted)

        def is_end(came):
            came = came or {}
            left.discard(came.get("method", came.get("id")))
            return not left

        self.record_lines(name, data, sorted(self.until(is_end)))

    def begin(self, name, message):
        """Sends a request that is not answered soon, and records what comes before the answer to a ping behind it."""
        data = written(message)
        self.send(data + b"\n")
        self.record_lines(name, data, self.settled())

    def tell(self, name, message, then=b"\n"):
        """Sends what may get no answer, and records what comes before the answer to a ping behind it."""
        data = written(message)
        self.send(data + then)
        lines = self.settled()
        request = parsed(data.removeprefix(BYTE_ORDER_MARK))
        is_last = answers(request)
        if is_request(request) and not any(is_last(parsed(line)) for line in lines):
            lines += self.until(is_last, MOMENT)
        self.record_lines(name, data, lines)

    def settled(self):
        """Everything that comes before the answer to a ping, without that."""
        self.sentinels += 1
        mark = f"sentinel {self.sentinels}"
        self.send(written({"jsonrpc": "2.0", "id": mark, "method": "ping"}) + b"\n")
        lines = self.until(lambda message: message is not None and message.get("id") == mark)
        return [line for line in lines if (parsed(line) or {}).get("id") != mark]

    def finish(self, name, with_code=True):
        """Closes standard input, and records what still comes and the exit code."""
        self.child.stdin.close()
        reply = self.reply(self.until(lambda message: False))
        if with_code:
            try:
                reply["exit"] = self.child.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                reply["exit"] = None
        self.record(name, {"line": None}, reply)


def answers(request):
    """Tells whether a message answers a request, or refuses it without an id."""
    wanted = request.get("id") if request else None

    def is_last(message):
        if message is None or "method" in message:
            return False
        return message.get("id") in (wanted, None)

    return is_last


def has_method(method):
    """Tells whether a message is the server's own of this method."""
    return lambda message: message is not None and message.get("method") == method


def is_request(message):
    """Tells whether a message is one that an answer may come to."""
    return message is not None and "method" in message and message.get("id") is not None


class Http(Process):
    """A server on a loopback port."""

    def __init__(self, stage, arguments=(), **config):
        super().__init__(stage, "http", arguments, **config)
        self.connection = None
        try:
            self.port = self.normal.port = self._port()
        except BaseException:
            self.close()
            raise

    def _port(self):
        """The port that the log tells."""
        deadline = time.monotonic() + START
        while time.monotonic() < deadline and self.child.poll() is None:
            with open(self.log, encoding="utf-8") as log:
                found = re.search(r'"address":"127\.0\.0\.1:(\d+)"', log.read())
            if found:
                return int(found[1])
            time.sleep(0.005)
        with open(self.log, encoding="utf-8") as log:
            raise RuntimeError(f"the server did not start: {log.read()}")

    def connect(self):
        """A new connection."""
        return Connection(self.port)

    def post(self, name, message, headers, path="/mcp", is_open=False):
        """Sends a message and records the reply."""
        return self.request(name, "POST", path, headers, message, is_open)

    def request(self, name, method, path, headers=(), body=None, is_open=False):
        """Sends a request on the kept connection and records the reply."""
        request, data = self.built(method, path, headers, body)
        if self.connection is None:
            self.connection = self.connect()
        reply = self.connection.exchange(data, method, is_open)
        if not self.connection.is_kept:
            self.connection.close()
            self.connection = None
        return self.recorded(name, request, reply)

    def stream(self, name, method, path, headers=(), body=None, mark=None):
        """Sends a request on a connection of its own and leaves it open.

        It records what comes up to an event with this mark, or before it is quiet.
        """
        request, data = self.built(method, path, headers, body)
        connection = self.connect()
        connection.mark = mark
        reply = connection.exchange(data, method, True)
        connection.mark = None
        self.recorded(name, request, reply)
        return connection, reply

    def rest(self, name, connection, is_open=False):
        """Records what still comes on a stream that was left open."""
        body, is_whole = connection.read_chunks(is_open)
        connection.close()
        reply = {"body": readable(body)} if is_whole else {"body": readable(body), "open": True}
        self.record(name, {"http": "the rest of the stream"}, reply)

    def built(self, method, path, headers, body):
        """A request as it is recorded, and its bytes."""
        names = {key.lower() for key, _ in headers}
        head = [] if "host" in names else [("Host", f"127.0.0.1:{self.port}")]
        head += [(key, value) for key, value in headers]
        data = None if body is None else written(body)
        if data is not None and not names & {"content-length", "transfer-encoding"}:
            head.append(("Content-Length", str(len(data))))
        text = "".join(f"{key}: {value}\r\n" for key, value in head)
        raw = f"{method} {path} HTTP/1.1\r\n{text}\r\n".encode("utf-8", "surrogateescape")
        request = {"http": f"{method} {path}", "headers": shortened_headers(headers, body)}
        if data is not None:
            request["body"] = shortened(readable(data))
        return request, raw + (data or b"")

    def raw(self, name, data):
        """Sends bytes on a connection of their own and records all replies."""
        connection = self.connect()
        reply = connection.exchange(data, "GET", False)
        connection.close()
        return self.recorded(name, {"raw": readable(data)}, reply)

    def recorded(self, name, request, reply):
        """Records an exchange. The length is left out where normalising may have changed it."""
        if reply["status"] is None:
            self.was_silent()
        shown = {key: self.normal.value(value) for key, value in reply.items() if key != "raw_body"}
        has_length = shown["headers"].get("content-length") == str(len(reply["raw_body"]))
        if has_length and shown["body"] != reply["body"]:
            shown["headers"]["content-length"] = "<length of the body>"
        if has_length and is_called(shown):
            # It may be there before the stream begins; that is up to the machine.
            del shown["headers"]["content-length"]
            shown["headers"] = {**shown["headers"], "transfer-encoding": "chunked"}
        self.stage.add(name, self.normal.value(request), shown)
        return reply


class Connection:
    """One TCP connection."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.buffer = b""
        self.ended = False
        self.is_kept = True
        self.mark = None

    def close(self):
        """Hangs up."""
        self.socket.close()

    def exchange(self, data, method, is_open):
        """Sends a request and reads its reply."""
        self.send(data)
        return self.read_reply(method, is_open)

    def send(self, data):
        """Writes bytes. A server that hung up is seen by whoever reads next."""
        try:
            self.socket.sendall(data)
        except OSError:
            pass

    def more(self, patience):
        """Reads some more; tells whether anything came."""
        if self.ended:
            return False
        self.socket.settimeout(max(patience, 0.001))
        try:
            piece = self.socket.recv(1 << 20)
        except TimeoutError:
            return False
        except OSError:
            piece = b""
        self.ended = not piece
        self.buffer += piece
        return bool(piece)

    def read_until(self, end):
        """The bytes up to `end`, with it; none where they do not come."""
        deadline = time.monotonic() + PATIENCE
        while end not in self.buffer:
            if not self.more(deadline - time.monotonic()):
                return None
        head, _, self.buffer = self.buffer.partition(end)
        return head + end

    def read_reply(self, method, is_open=False):
        """One reply; of an open stream only what comes before it is quiet."""
        head = self.read_until(b"\r\n\r\n")
        if head is not None and head.startswith(b"HTTP/1.1 100 "):
            return {**self.read_reply(method, is_open), "continue": True}
        if head is None:
            self.is_kept = False
            return {"status": None, "headers": {}, "raw_body": b"", "body": readable(self.buffer)}
        lines = readable(head).split("\r\n")
        headers = {}
        for line in filter(None, lines[1:]):
            key, _, value = line.partition(":")
            key, value = key.strip().lower(), value.strip()
            headers[key] = f"{headers[key]} | {value}" if key in headers else value
        headers.pop("date", None)
        status = int(lines[0].split(" ")[1])
        body, is_whole = self.read_body(method, status, headers, is_open)
        if headers.get("connection") == "close" or not is_whole:
            self.is_kept = False
        reply = {"status": status, "headers": dict(sorted(headers.items())), "raw_body": body, "body": readable(body)}
        if not is_whole:
            reply["open"] = True
        return reply

    def read_body(self, method, status, headers, is_open):
        """The body, and whether it came to its end."""
        if method == "HEAD" or status in (204, 304) or status < 200:
            return b"", True
        if headers.get("transfer-encoding") == "chunked":
            return self.read_chunks(is_open)
        deadline = time.monotonic() + PATIENCE
        if "content-length" not in headers:
            self.is_kept = False
            while self.more(deadline - time.monotonic()):
                pass
            return self.buffer, self.ended
        length = int(headers["content-length"])
        while len(self.buffer) < length:
            if not self.more(deadline - time.monotonic()):
                break
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return body, len(body) == length

    def read_chunks(self, is_open):
        """A body in chunks, and whether its last one came."""
        body = b""
        patience = QUIET if is_open and self.mark is None else PATIENCE
        while True:
            line, _, rest = self.buffer.partition(b"\r\n")
            if _ and len(rest) >= int(line, 16) + 2:
                size = int(line, 16)
                self.buffer = rest[size + 2:]
                if size == 0:
                    return body, True
                body += rest[:size]
                if self.mark is not None and self.mark in body and body.endswith(b"\n\n"):
                    return body, False
            elif not self.more(patience):
                return body, False
