"""What the official conformance suite sends, as `record_conformance.py` wrote it down."""

import json
import os

from wire import Http, parsed

FILE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "conformance-requests.jsonl")


def scenes():
    """One scene, in the order of the suite."""
    yield "conformance", replay


def replay(stage, prefix):
    """Sends every request again."""
    with open(FILE, encoding="utf-8") as file:
        requests = [json.loads(line) for line in file]
    with Http(stage, toolsets=["workspace", "guide"]) as http:
        for number, request in enumerate(requests, 1):
            body = request["body"].replace("<port>", str(http.port))
            headers = [(name, value.replace("<port>", str(http.port))) for name, value in request["headers"]]
            what = (parsed(body) or {}).get("method", request["method"])
            name = f"{prefix}/{request['revision']}/{number:03} {what}"
            http.request(name, request["method"], request["path"], headers, body or None, is_open=True)
