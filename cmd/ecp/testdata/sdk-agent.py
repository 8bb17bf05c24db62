"""An agent made with the reference's SDK, in the shapes that it can have: the arguments say which.

    sdk-agent.py class | async | text | loud        over stdio
    sdk-agent.py http PORT                          over HTTP, asynchronous
"""

import asyncio
import sys

from ecp import Result, agent, on_reset, on_step, serve, serve_http

shape = sys.argv[1]


def answer(memory, text):
    """The answer to a message; memory is what was said since the last reset."""
    memory.append(text)
    if text == "fail":
        raise RuntimeError("it was told to")
    if shape == "loud":
        print("log " * 50_000, file=sys.stderr, flush=True)
    if text == "pause":
        return Result(status="paused", public_output="What else?")
    if text == "nothing":
        return Result()
    return Result(
        public_output="%d: %s – 日本 😀" % (len(memory), text),
        evaluation_context="heard " + text,
        tool_calls=[{"name": "remember", "arguments": {"text": text, "n": len(memory)}}, {"name": "rest"}],
        logs="one\ntwo",
    )


if shape == "text":

    @agent(name="TextAgent")
    class Agent:
        @on_step
        def handle(self, text):
            return "said " + text

elif shape in ("async", "http"):

    @agent(name="AsyncAgent")
    class Agent:
        def __init__(self):
            self.memory = []

        @on_step
        async def handle(self, text):
            await asyncio.sleep(0)
            return answer(self.memory, text)

        @on_reset
        async def forget(self):
            await asyncio.sleep(0)
            self.memory.clear()

else:

    @agent(name="ClassAgent")
    class Agent:
        def __init__(self):
            self.memory = []

        @on_step
        def handle(self, text):
            return answer(self.memory, text)

        @on_reset
        def forget(self):
            self.memory.clear()


if shape == "http":
    serve_http(Agent(), port=int(sys.argv[2]))
else:
    serve(Agent())
