"""Asking the client for files: by a request while the call runs, and by a result that names what is missing."""

import json

from cases.sessions import begun
from messages import (
    INITIALIZED, LEFT_OUT, NEWEST, call, greet, headers, initialize, meta, newest_headers, notification, request,
)
from wire import Http, Stdio

SAMPLING = {"sampling": {}}
QUESTION = "sampling/createMessage"
MARK = b'"method":"sampling/createMessage"'


def scenes():
    """The scenes, by name."""
    yield "guide/stdio", on_stdio
    yield "guide/stdio directory", directories_on_stdio
    yield "guide/stdio cancelled", cancelled
    yield "guide/stdio handover", handover
    yield "guide/stdio timeout", timeout
    yield "guide/stdio revisions", other_revisions
    yield "guide/session", in_session
    yield "guide/session cancelled", cancelled_in_session
    yield "guide/without session", without_session
    yield "guide/newest stdio", newest_on_stdio
    yield "guide/newest http", newest_on_http
    yield "guide/cache", cache


def said(text, **more):
    """What a model says."""
    return {"role": "assistant", "model": "test", "content": {"type": "text", "text": text}, **more}


# Answers to a question for a file: results, then errors, then what cannot be read.
RESULTS = {
    "text": said("MARKER\n# Plan\n"), "empty": said("MARKER\n"), "unicode": said("MARKER\nnaïve 漢字 🦀"),
    "time and size": said("MARKER mtime=1700000000 size=1\nx"), "wrong size": said("MARKER size=2\nx"),
    "stop reason": said("MARKER\nx", stopReason="endTurn"),
    "list": {**said("x"), "content": [{"type": "text", "text": "MARKER"}, {"type": "text", "text": "two"}]},
    "empty list": {**said("x"), "content": []},
    "image": {**said("x"), "content": {"type": "image", "data": "AAAA", "mimeType": "image/png"}},
    "tool use": {**said("x"), "content": {"type": "tool_use", "id": "1", "name": "n", "input": {}}},
    "user": {**said("MARKER\nx"), "role": "user"}, "unmarked": said("x"), "apology": said("I have no access to files."),
    "fenced marker": said("```\nMARKER\nx\n```"),
    "cut": said("MARKER\nhalf of it", stopReason="maxTokens"), "no content": {"role": "assistant", "model": "test"},
    "no model": {"role": "assistant", "content": {"type": "text", "text": "MARKER\nx"}},
    "no role": {"model": "test", "content": {"type": "text", "text": "MARKER\nx"}},
    "nothing": {}, "null": None, "a text": "x", "a number": 5, "a list": [1],
    "bad content": {**said("x"), "content": 5}, "extra": said("MARKER\nx", more=[1]),
    "not found": said('File not found: "docs/a"'), "denied": said('Permission denied: "docs/a"'),
    "not found elsewhere": said('File not found: "docs/x"'), "encoding error": said('Encoding error: "docs/a"'),
}
ERRORS = {
    "not found": {"code": -1, "message": "File not found"}, "denied": {"code": -1, "message": "Permission denied"},
    "other": {"code": -32603, "message": "the model is asleep"},
    "with data": {"code": 1, "message": "no", "data": {"a": 1}},
    "rejected": {"code": -1, "message": "User rejected sampling request"},
    "method not found": {"code": -32601, "message": "Method not found"},
}


# Those that cannot be read: the client is told so beside the answer of its call.
SPOILED = ["error without message", "result and error", "no jsonrpc", "cut", "many values"]


def marked(result, question):
    """A result with the marker of a question in the place of the word MARKER."""
    params = (question or {}).get("params", {})
    marker = params.get("_meta", {}).get("io.github.mcp-filesystem/question", {}).get("marker", "")
    return json.loads(json.dumps(result).replace("MARKER", json.dumps(marker)[1:-1]))


def answers(own_id, question=None):
    """Every answer to a question of this id."""
    for word, result in RESULTS.items():
        yield f"result {word}", {"jsonrpc": "2.0", "id": own_id, "result": marked(result, question)}
    for word, error in ERRORS.items():
        yield f"error {word}", {"jsonrpc": "2.0", "id": own_id, "error": error}
    written = json.dumps(own_id)
    yield "error without message", {"jsonrpc": "2.0", "id": own_id, "error": {"code": 1}}
    yield "result and error", {"jsonrpc": "2.0", "id": own_id, "result": {}, "error": {"code": 1, "message": "x"}}
    yield "no jsonrpc", {"id": own_id, "result": said("x")}
    yield "cut", f'{{"jsonrpc":"2.0","id":{written},"result":{{'
    yield "many values", f'{{"jsonrpc":"2.0","id":{written},"result":[' + "0," * 100_001 + "0]}"


def words():
    """The names of the answers."""
    return [word for word, _ in answers(0)]


def ask_file(own_id, path, **more):
    """A call that needs a file of the agent's."""
    return call(own_id, "guide_request_file", {"path": path, **more})


def on_stdio(stage, prefix):
    """Every answer over stdio, one file each."""
    with Stdio(stage, toolsets=["guide"]) as line:
        greet(line, prefix, capabilities=SAMPLING)
        for number, word in enumerate(words()):
            line_answers(line, f"{prefix}/{word}", ask_file(100 + number, "docs/a", refresh=True), word)
        variants = {
            "binary": {"binary": True}, "encoding": {"encoding": "latin-1"}, "refresh": {"refresh": True},
            "mtime": {"mtime": 5}
        }
        for number, (word, more) in enumerate(variants.items()):
            line_answers(line, f"{prefix}/asked {word}", ask_file(200 + number, f"docs/{word}", **more), "result text")
        line.ask(f"{prefix}/from the cache", ask_file(300, "docs/a"))
        line.ask(f"{prefix}/forbidden", ask_file(301, "secret/key"))
        line.ask(f"{prefix}/stats", call(302, "guide_cache_stats", {}))
        line.finish(f"{prefix}/end")


def line_answers(line, name, message, word):
    """Asks, and answers; a second question, for the bytes of the same file, is answered as well."""
    question = line.ask_for(name, message, QUESTION)
    if question is None:
        return
    answer = dict(answers(question["id"], question))[word]
    if word in SPOILED:
        line.ask_all(f"{name}/answer", answer, [message["id"], None])
        return
    question = line.answer_or_question(f"{name}/answer", answer, message["id"], QUESTION)
    if question is not None and question.get("method") == QUESTION:
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": marked(said("MARKER\nAP8B"), question)}
        line.answer_for(f"{name}/second answer", answer, message["id"])


def directories_on_stdio(stage, prefix):
    """Listings as an agent writes them."""
    listing = (
        '[{"name":"plan.md","type":"file","size":7,"mtime":20},'
        '{"name":"sub","type":"directory","children":[{"name":"x.rs","type":"file"}]}]'
    )
    texts = {
        "good": listing, "fenced": f"```json\n{listing}\n```", "words": "docs: plan.md", "empty": "[]",
        "escape": '[{"name":"../../etc","type":"directory"}]',
        "not found": 'Directory not found: "docs/5"', "unmarked": listing, "number": "5", "odd type": '[{"name":"a","type":"pipe"}]',
    }
    with Stdio(stage, toolsets=["guide"]) as line:
        greet(line, prefix, capabilities=SAMPLING)
        for number, (word, text) in enumerate(texts.items()):
            arguments = {"path": f"docs/{number}", "recursive": number % 2 == 0}
            question = line.ask_for(
                f"{prefix}/{word}", call(100 + number, "guide_request_directory", arguments), QUESTION
            )
            text = text if word in ["not found", "unmarked"] else f"MARKER\n{text}"
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": marked(said(text), question)}
            line.answer_or_question(f"{prefix}/{word}/answer", answer, 100 + number, QUESTION)
        question = line.ask_for(
            f"{prefix}/pattern", call(200, "guide_request_directory", {"path": "src", "pattern": "*.md"}), QUESTION
        )
        line.answer_or_question(
            f"{prefix}/pattern/answer",
            {"jsonrpc": "2.0", "id": question["id"], "result": marked(said(f"MARKER\n{listing}"), question)}, 200, QUESTION
        )
        line.finish(f"{prefix}/end")


def cancelled(stage, prefix):
    """A call that is cancelled takes its question back; answers that come too late are nobody's."""
    with Stdio(stage, toolsets=["guide"]) as line:
        greet(line, prefix, capabilities=SAMPLING)
        question = line.ask_for(f"{prefix}/call", ask_file(2, "docs/a"), QUESTION)
        line.ask_for(
            f"{prefix}/cancelled", notification("notifications/cancelled", {"requestId": 2}), "notifications/cancelled"
        )
        line.tell(f"{prefix}/late answer", {"jsonrpc": "2.0", "id": question["id"], "result": said("late")})
        line.ask(f"{prefix}/stats", call(3, "guide_cache_stats", {}))
        question = line.ask_for(f"{prefix}/another call", ask_file(4, "docs/b"), QUESTION)
        line.tell(f"{prefix}/answer to nobody", {"jsonrpc": "2.0", "id": 4242, "result": said("x")})
        line.ask(f"{prefix}/call meanwhile", call(5, "guide_cache_stats", {}))
        line.answer_for(
            f"{prefix}/answer with a text id", {"jsonrpc": "2.0", "id": str(question["id"]), "result": marked(said("MARKER\nx"), question)}, 4
        )
        line.tell(f"{prefix}/answer again", {"jsonrpc": "2.0", "id": question["id"], "result": said("twice")})
        line.ask_for(f"{prefix}/left open", ask_file(6, "docs/c"), QUESTION)
        # Without the exit code: today the process now and then overflows its stack when it ends with an open question.
        line.finish(f"{prefix}/end", with_code=False)


def handover(stage, prefix):
    """A file that is handed over by a tool while it is asked for."""
    with Stdio(stage, toolsets=["guide"]) as line:
        greet(line, prefix, capabilities=SAMPLING)
        line.ask_for(f"{prefix}/call", ask_file(2, "docs/a"), QUESTION)
        given = call(3, "guide_cache_file", {"path": "docs/a", "content": "by tool"})
        line.ask_all(f"{prefix}/handed over", given, [2, 3, "notifications/cancelled"])
        line.ask(f"{prefix}/stats", call(4, "guide_cache_stats", {}))
        line.finish(f"{prefix}/end")


def timeout(stage, prefix):
    """An agent that does not answer in time."""
    with Stdio(stage, toolsets=["guide"], guide={"sampling_timeout": 1}) as line:
        greet(line, prefix, capabilities=SAMPLING)
        line.ask_for(f"{prefix}/call", ask_file(2, "docs/a"), QUESTION)
        line.ask_all(
            f"{prefix}/time is over", notification("notifications/roots/list_changed"), [2, "notifications/cancelled"]
        )
        line.finish(f"{prefix}/end")


def other_revisions(stage, prefix):
    """Who declares sampling in another revision, or in another form."""
    forms = {
        "2024-11-05": SAMPLING, "2025-03-26": SAMPLING, "2025-06-18": SAMPLING, "2099-01-01": SAMPLING, NEWEST: SAMPLING
    }
    for revision, capabilities in forms.items():
        with Stdio(stage, toolsets=["guide"]) as line:
            greet(line, f"{prefix}/{revision}", revision, capabilities)
            line_answers(line, f"{prefix}/{revision}/call", ask_file(2, "docs/a"), "result text")
    for word, capabilities in {
        "none": {}, "null": {"sampling": None}, "tools": {"sampling": {"tools": {}, "context": {}}}
    }.items():
        with Stdio(stage, toolsets=["guide"]) as line:
            greet(line, f"{prefix}/{word}", "2025-11-25", capabilities)
            if word == "tools":
                line_answers(line, f"{prefix}/{word}/call", ask_file(2, "docs/a"), "result text")
            else:
                line.ask(f"{prefix}/{word}/call", ask_file(2, "docs/a"))
    with Stdio(stage, toolsets=["guide"]) as line:
        line.ask(f"{prefix}/before initialized", initialize(1, "2025-11-25", SAMPLING))
        line_answers(line, f"{prefix}/before initialized/call", ask_file(2, "docs/a"), "result text")


def question_in(body):
    """The server's question in the text of a stream."""
    for part in body.split("\n"):
        if part.startswith("data: {"):
            message = json.loads(part[6:])
            if message.get("method") == QUESTION:
                return message
    return {"id": None}


def in_session(stage, prefix):
    """Every answer in a session over HTTP."""
    with Http(stage, toolsets=["guide"]) as http:
        own = begun(http, prefix, capabilities=SAMPLING)
        for number, word in enumerate(words()):
            stream, reply = http.stream(
                f"{prefix}/{word}", "POST", "/mcp", own, ask_file(100 + number, "docs/a", refresh=True), MARK
            )
            question = question_in(reply["body"])
            http.post(f"{prefix}/{word}/answer", dict(answers(question["id"], question))[word], own)
            if word == "result encoding error":
                stream.mark = MARK  # The server asks once more, for the bytes.
            http.rest(f"{prefix}/{word}/rest", stream)
        http.post(f"{prefix}/from the cache", ask_file(300, "docs/a"), own)
        http.post(f"{prefix}/stats", call(301, "guide_cache_stats", {}), own)
        stream, reply = http.stream(
            f"{prefix}/answered elsewhere", "POST", "/mcp", own, ask_file(302, "docs/elsewhere"), MARK
        )
        other = begun(http, f"{prefix}/other", capabilities=SAMPLING)
        question = question_in(reply["body"])
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": marked(said("MARKER\nx"), question)}
        http.post(f"{prefix}/other/answer", answer, other)
        http.post(f"{prefix}/answered elsewhere/without a session", answer, headers("2025-11-25"))
        http.post(f"{prefix}/answered elsewhere/answer", answer, own)
        http.rest(f"{prefix}/answered elsewhere/rest", stream)
        http.post(f"{prefix}/answered elsewhere/answer again", answer, own)


def cancelled_in_session(stage, prefix):
    """Calls that are cancelled or left in a session, and a session that ends while one waits."""
    with Http(stage, toolsets=["guide"]) as http:
        own = begun(http, prefix, capabilities=SAMPLING)
        stream, _ = http.stream(f"{prefix}/call", "POST", "/mcp", own, ask_file(2, "docs/a"), MARK)
        http.post(f"{prefix}/cancelled", notification("notifications/cancelled", {"requestId": 2}), own)
        http.rest(f"{prefix}/rest", stream, True)
        stream, _ = http.stream(f"{prefix}/another call", "POST", "/mcp", own, ask_file(3, "docs/b"), MARK)
        http.post(f"{prefix}/handed over", call(4, "guide_cache_file", {"path": "docs/b", "content": "by tool"}), own)
        http.rest(f"{prefix}/rest of the other", stream)
        stream, _ = http.stream(f"{prefix}/a third call", "POST", "/mcp", own, ask_file(5, "docs/c"), MARK)
        http.request(f"{prefix}/deleted", "DELETE", "/mcp", own[2:])
        http.rest(f"{prefix}/rest of the third", stream, True)


def without_session(stage, prefix):
    """Older clients without a session cannot be asked."""
    for word, server in {"auto": {}, "off": {"sessions": "off"}}.items():
        with Http(stage, toolsets=["guide"], server=server) as http:
            http.post(f"{prefix}/{word}/initialize", initialize(1, "2025-11-25", SAMPLING), headers())
            http.post(f"{prefix}/{word}/call", ask_file(2, "docs/a"), headers("2025-11-25"))
            http.post(f"{prefix}/{word}/list", request(3, "tools/list", {"cursor": "x"}), headers("2025-11-25"))
            http.post(f"{prefix}/{word}/initialized", INITIALIZED, headers("2025-11-25"))


def rounds(prefix, ask, other_state):
    """The rounds of the newest revision: what is missing, answers of every form, and states that are not ours."""
    own = meta(capabilities=SAMPLING)

    # A path for each round: equal questions that are not answered would wait for each other.
    usual = {"path": "docs/a", "refresh": True}

    def again(word, state, responses, arguments):
        fields = {"requestState": state, "inputResponses": responses}
        fields = {key: value for key, value in fields.items() if value is not LEFT_OUT}
        return ask(f"{prefix}/{word}", call(2, "guide_request_file", arguments, own, **fields))

    def asked(word, arguments):
        reply = ask(f"{prefix}/{word}/asked", call(1, "guide_request_file", arguments, own))
        result = (reply or {}).get("result", {})
        return result.get("requestState", ""), result.get("inputRequests", {}).get("agent_file")

    for word, result in RESULTS.items():
        state, question = asked(f"result {word}", usual)
        again(f"result {word}", state, {"agent_file": marked(result, question)}, usual)
    for number, (word, responses) in enumerate({
        "no answers": LEFT_OUT, "null answers": None, "empty answers": {}, "list of answers": [said("x")],
        "another name": {"other": said("x")},
        "two names": {"agent_file": said("MARKER\nx"), "other": said("y")},
        "error": {"agent_file": {"error": {"code": 1, "message": "File not found"}}},
    }.items()):
        arguments = {"path": f"docs/{number}", "refresh": True}
        state, question = asked(word, arguments)
        responses = responses if responses is LEFT_OUT else marked(responses, question)
        again(word, state, responses, arguments)
    state, question = asked("states", usual)
    answer = {"agent_file": marked(said("MARKER\nx"), question)}
    swapped = state[:-3] + ("A" if state[-3:-2] != "A" else "B") + state[-2:]
    for word, wrong in {
        "forged": "rs1.x.y", "empty": "", "swapped": swapped, "of another server": other_state, "null": None,
        "number": 5,
    }.items():
        again(f"states/{word}", wrong, answer, usual)
    again("states/other arguments", state, answer, {"path": "docs/other"})
    again("states/right", state, answer, usual)
    again("states/used again", state, {"agent_file": marked(said("MARKER\ny"), question)}, usual)
    again("states/left out", LEFT_OUT, answer, usual)
    ask(f"{prefix}/state for another tool", call(3, "guide_cache_stats", {}, own, requestState=state))
    ask(f"{prefix}/without sampling", call(4, "guide_request_file", {"path": "docs/nobody"}, meta()))
    directory = call(5, "guide_request_directory", {"path": "tests", "recursive": True, "pattern": "*.rs"}, own)
    reply = ask(f"{prefix}/directory", directory)
    result = (reply or {}).get("result", {})
    state, question = result.get("requestState", ""), result.get("inputRequests", {}).get("agent_file")
    listing = marked(said('MARKER\n[{"name":"t.rs","type":"file"},{"name":"x.md","type":"file"}]'), question)
    params = {**directory["params"], "requestState": state, "inputResponses": {"agent_file": listing}}
    ask(f"{prefix}/directory again", {**directory, "params": params})
    ask(f"{prefix}/stats", call(6, "guide_cache_stats", {}, own))


def state_of_another(stage):
    """A state that another server sealed."""
    silent = type(stage)(stage.binary)
    with Stdio(silent, toolsets=["guide"]) as line:
        reply = line.ask(
            "another", call(1, "guide_request_file", {"path": "docs/a", "refresh": True}, meta(capabilities=SAMPLING))
        )
        return reply["result"]["requestState"]


def newest_on_stdio(stage, prefix):
    """The rounds over stdio."""
    other = state_of_another(stage)
    with Stdio(stage, toolsets=["guide"], guide={"state_key_file": "key"}) as line:
        rounds(prefix, line.ask, other)
        line.finish(f"{prefix}/end")


def newest_on_http(stage, prefix):
    """The rounds over HTTP."""
    other = state_of_another(stage)
    with Http(stage, toolsets=["guide"], guide={"state_key_file": "key"}) as http:
        def ask(name, message):
            reply = http.post(name, message, newest_headers(message))
            try:
                return json.loads(reply["body"])
            except ValueError:
                return None

        rounds(prefix, ask, other)


def cache(stage, prefix):
    """What is cached, thrown out and counted, by several clients."""
    with Http(stage, toolsets=["guide"], guide={"cache_size": 100}, server={"bearer_tokens_file": "tokens"}) as http:
        for number, token in enumerate(["first-token-of-two", "second-token-of-two", "first-token-of-two"]):
            for word, message in {
                "small": call(1, "guide_cache_file", {"path": f"docs/{number}", "content": "x" * 40}, meta()),
                "again": call(
                    1, "guide_cache_file", {"path": f"docs/{number}", "content": "y" * 40, "metadata": {"mtime": 9}},
                    meta()
                ),
                "too large": call(1, "guide_cache_file", {"path": "docs/large", "content": "x" * 101}, meta()),
                "read": call(1, "guide_request_file", {"path": "docs/0"}, meta()),
                "older": call(1, "guide_request_file", {"path": f"docs/{number}", "mtime": 10}, meta()),
                "violation": call(1, "guide_request_file", {"path": "../x"}, meta()),
                "stats": call(1, "guide_cache_stats", {}, meta()),
            }.items():
                http.post(
                    f"{prefix}/{number}/{word}", message, newest_headers(message, ("Authorization", f"Bearer {token}"))
                )
