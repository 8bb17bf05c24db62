"""A server made with MCP's SDK for Python: python python.py [PORT]. Without a port it speaks stdio."""

import sys
from typing import Annotated, Literal

import anyio
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve, Sample
from mcp.types import (
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestURLParams,
    InputRequiredResult,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel

server = MCPServer("python")
was_cancelled = anyio.Event()


class Sum(BaseModel):
    sum: int


class Colour(BaseModel):
    colour: Literal["red", "blue"]


@server.tool()
def add(a: int, b: int) -> Sum:
    return Sum(sum=a + b)


def ask_colour() -> Elicit[Colour]:
    return Elicit("Which colour?", Colour)


@server.tool()
async def form(colour: Annotated[Colour, Resolve(ask_colour)]) -> str:
    return f"accept {colour.colour}"


@server.tool()
async def page(ctx: Context) -> str | InputRequiredResult:
    if ctx.input_responses:
        return f"page: {ctx.input_responses['pay'].action}"
    params = ElicitRequestURLParams(message="Pay", url="https://pay.example/1", elicitation_id="1")
    return InputRequiredResult(input_requests={"pay": ElicitRequest(params=params)})


def ask_model() -> Sample:
    text = TextContent(type="text", text="Think of a number.")
    return Sample([SamplingMessage(role="user", content=text)], max_tokens=50)


@server.tool()
async def think(thought: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
    return f"thought: {thought.content.text}"


@server.tool()
async def wait(ctx: Context) -> str:
    steps = 0
    try:
        while True:
            steps += 1
            await ctx.report_progress(steps, None, "on my way")
            await anyio.sleep(0.2)
    finally:
        was_cancelled.set()


@server.tool()
async def cancelled() -> str:
    await was_cancelled.wait()
    return "the call was cancelled"


@server.tool()
async def grow(ctx: Context) -> str:
    server.add_tool(grown)
    await ctx.notify_tools_changed()
    return "more"


def grown() -> str:
    """A tool that was not there before."""
    return "I am new"


@server.resource("note://one", mime_type="text/plain")
def note() -> str:
    return "the note says plum"


@server.prompt()
def greet(name: str) -> str:
    return f"Greet {name}."


if len(sys.argv) < 2:
    server.run("stdio")
else:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
