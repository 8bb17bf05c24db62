"""Plays a client of A2A's own SDK for Python against `eca serve`: card, send, stream, cancel.

Arguments: the server's URL, the bearer token, the binding (JSONRPC or HTTP+JSON).
"""

import asyncio
import sys

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as a2a

url, token, binding = sys.argv[1:]
count = 0


def message(text):
    global count
    count += 1
    return a2a.SendMessageRequest(
        message=a2a.Message(message_id=f"m{count}", role=a2a.ROLE_USER, parts=[a2a.Part(text=text)])
    )


async def main():
    async with httpx.AsyncClient() as anonymous:
        card = await A2ACardResolver(anonymous, url).get_agent_card()
    scheme = card.security_schemes["bearer"].http_auth_security_scheme.scheme
    needs = list(card.security_requirements[0].schemes)
    print("card", scheme, needs, sorted({i.protocol_binding for i in card.supported_interfaces}))
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=60) as http:
        for streaming in (False, True):
            config = ClientConfig(httpx_client=http, streaming=streaming, supported_protocol_bindings=[binding])
            client = ClientFactory(config).create(card)
            kinds, text, task = [], "", None
            async for event in client.send_message(message("hi")):
                kind = event.WhichOneof("payload")
                if not kinds or kinds[-1] != kind:
                    kinds.append(kind)
                if kind == "task":
                    task = event.task
                    text += "".join(p.text for a in task.artifacts for p in a.parts)
                if kind == "artifact_update":
                    text += "".join(p.text for p in event.artifact_update.artifact.parts)
            print("stream" if streaming else "send", ",".join(kinds), text)
        got = await client.get_task(a2a.GetTaskRequest(id=task.id))
        print("get", got.id == task.id, a2a.TaskState.Name(got.status.state))
        listed = await client.list_tasks(a2a.ListTasksRequest(context_id=task.context_id))
        print("list", len(listed.tasks))
        extended = await client.get_extended_agent_card(a2a.GetExtendedAgentCardRequest())
        print("extended", any(s.id == "agent/code" for s in extended.skills))
        try:
            await client.get_task(a2a.GetTaskRequest(id="none"))
        except Exception as e:
            print("missing", type(e).__name__)
        async for event in client.send_message(message("hang")):
            if event.WhichOneof("payload") == "task":
                stopped = await client.cancel_task(a2a.CancelTaskRequest(id=event.task.id))
                print("cancel", a2a.TaskState.Name(stopped.status.state))
    print("end")


asyncio.run(main())
