"""A calculator that speaks the Evaluation Context Protocol over stdio: Python 3, no packages.

Each line is one JSON object: requests on stdin, answers on stdout. Write nothing else to
stdout; use stderr for logs.
"""

import json
import re
import sys

PROTOCOL = "1.0"
CAPABILITIES = {"tool_calls": {}, "evaluation_context": {}, "reset": {}, "multi_turn": {}}


class VersionUnsupported(Exception):
    pass


def negotiate(version):
    """Return the version that both sides support: the same major and the lower minor version."""
    if not isinstance(version, str) or not re.fullmatch(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)", version):
        raise TypeError("protocol_version must be MAJOR.MINOR")
    ours, theirs = [int(n) for n in PROTOCOL.split(".")], [int(n) for n in version.split(".")]
    if theirs[0] != ours[0]:
        raise VersionUnsupported("VERSION_UNSUPPORTED: the runtime requests version %s, this agent supports %s" % (version, PROTOCOL))
    return "%d.%d" % (ours[0], min(ours[1], theirs[1]))


class Agent:
    def __init__(self):
        self.turns = 0

    def step(self, text):
        """Answer one message: the sum of the numbers in it. Replace this with your agent."""
        self.turns += 1
        numbers = [int(n) for n in re.findall(r"-?\d+", text)]
        if not numbers:
            return {"status": "paused", "public_output": "Which numbers should I add?"}
        return {
            "status": "done",
            "public_output": "The sum is %d." % sum(numbers),
            "evaluation_context": "Message %d has %d numbers." % (self.turns, len(numbers)),
            "tool_calls": [{"name": "add", "arguments": {"numbers": numbers}}],
        }


def answer(agent, method, params):
    if not isinstance(params, dict):
        raise TypeError("params must be an object")
    if method == "agent/initialize":
        version = negotiate(params.get("protocol_version", PROTOCOL))
        return {"name": "calculator", "protocol_version": version, "capabilities": CAPABILITIES}
    if method == "agent/step":
        if not isinstance(params.get("input"), str):
            raise TypeError("input must be a string")
        return agent.step(params["input"])
    if method == "agent/reset":
        agent.__init__()
        return True
    raise LookupError("Unknown method: %s" % method)


def main():
    agent = Agent()
    for line in sys.stdin:
        if not line.strip():
            continue
        request = {}
        try:
            request = json.loads(line)
            reply = {"result": answer(agent, request["method"], request.get("params") or {})}
        except LookupError as e:
            reply = {"error": {"code": -32601, "message": str(e)}}
        except VersionUnsupported as e:
            reply = {"error": {"code": -32001, "message": str(e)}}
        except TypeError as e:
            reply = {"error": {"code": -32602, "message": str(e)}}
        except ValueError as e:
            reply = {"error": {"code": -32700, "message": str(e)}}
        if not request or "id" in request:
            reply = dict({"jsonrpc": "2.0", "id": request.get("id")}, **reply)
            print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
