// Plays a client of A2A's own SDK against `eca serve`: send, stream, a decision, cancel.
// Arguments: the folder of node modules, the server's URL, the bearer token, the binding.
const [modules, url, token, binding] = process.argv.slice(2);
const { createRequire } = require("node:module");
const load = createRequire(modules + "/");
const { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory, RestTransportFactory } = load("@a2a-js/sdk/client");
const { TaskState } = load("@a2a-js/sdk");

const authorized = (input, init = {}) =>
  fetch(input, { ...init, headers: { ...Object.fromEntries(new Headers(init.headers)), authorization: "Bearer " + token } });

let count = 0;
const message = (text, more = {}) => ({
  message: { messageId: "m" + ++count, role: 1, parts: [{ content: { $case: "text", value: text } }], ...more },
});
const taskOf = (result) => (result.payload ? result.payload.value : (result.task ?? result));
const textOf = (task) => task.artifacts.flatMap((a) => a.parts).map((p) => (p.content?.$case === "text" ? p.content.value : "")).join("");
const plain = (value) => value.constructor.name.replace(/^_?((JsonRpc|Rest)(?=Task))?/, "");
const say = (...words) => console.log(...words);

async function main() {
  // The card is read without the token.
  const Transport = binding === "HTTP+JSON" ? RestTransportFactory : JsonRpcTransportFactory;
  const client = await new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports: [new Transport({ fetchImpl: authorized })], preferredTransports: [binding] }),
  ).createFromUrl(url);
  const card = await client.getAgentCard();
  say("card", card.securitySchemes.bearer.scheme.$case, card.securitySchemes.bearer.scheme.value.scheme, Object.keys(card.securityRequirements[0].schemes), plain(client.transport));

  const sent = taskOf(await client.sendMessage(message("hi")));
  say("send", TaskState[sent.status.state], textOf(sent));

  const cases = [];
  let streamed = "";
  for await (const e of client.sendMessageStream(message("hi"))) {
    const { $case, value } = e.payload;
    if (cases.at(-1) !== $case) cases.push($case);
    if ($case === "artifactUpdate") streamed += value.artifact.parts.map((p) => p.content.value).join("");
  }
  say("stream", cases.join(","), streamed);

  const asked = taskOf(await client.sendMessage(message("write")));
  say("asked", TaskState[asked.status.state]);
  const decided = taskOf(await client.sendMessage(message("yes", { taskId: asked.id, contextId: asked.contextId })));
  say("decided", TaskState[decided.status.state]);

  for await (const e of client.sendMessageStream(message("hang"))) {
    const { $case, value } = e.payload;
    if ($case === "task") {
      const stopped = await client.cancelTask({ id: value.id });
      say("cancel", TaskState[stopped.status.state]);
    }
  }
  const missing = await client.getTask({ id: "none" }).then(() => "found", (e) => plain(e));
  say("missing", missing);
  const list = await client.listTasks({ contextId: sent.contextId, status: 0 });
  say("list", list.tasks.length, (await client.getTask({ id: sent.id })).id === sent.id);
  say("end");
}

main().catch((e) => {
  console.error(e);
  process.exit(1);
});
