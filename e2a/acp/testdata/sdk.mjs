// A client made of ACP's own SDK: it speaks to the agent on stdin and stdout, and says on
// stderr, as one line of JSON, what it met. Arguments: the SDK's module, the workspace.
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [sdk, cwd] = process.argv.slice(2);
const acp = await import(pathToFileURL(sdk).href);
const { methods } = acp;

const met = { updates: [], asked: [] };
let onPermission = () => ({ outcome: { outcome: "cancelled" } });

const app = acp
  .client({ name: "eca-test" })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    met.asked.push(params.toolCall);
    return onPermission(params);
  })
  .onNotification(methods.client.session.update, ({ params }) => {
    met.updates.push(params.update);
  });

const stream = acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin));
await app.connectWith(stream, async (agent) => {
  met.initialize = await agent.request(methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {},
    clientInfo: { name: "eca-test", version: "1" },
  });
  const session = await agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
  const sessionId = session.sessionId;
  met.modes = session.modes.availableModes.map((m) => m.id);
  met.options = session.configOptions.map((o) => o.id);
  const prompt = (text) => agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });

  await agent.request(methods.agent.session.setMode, { sessionId, modeId: "plan" });
  const set = (configId, value) => agent.request(methods.agent.session.setConfigOption, { sessionId, configId, value });
  met.set = (await set("model", "mock/n")).configOptions.find((o) => o.id === "model").currentValue;
  await set("mode", "code");

  const option = (params, kind) => params.options.find((o) => o.kind === kind).optionId;
  onPermission = (params) => ({ outcome: { outcome: "selected", optionId: option(params, "allow_once") } });
  met.allowed = (await prompt("Write.")).stopReason;
  onPermission = (params) => ({ outcome: { outcome: "selected", optionId: option(params, "reject_once") } });
  met.rejected = (await prompt("Write again.")).stopReason;
  onPermission = async () => {
    await agent.notify(methods.agent.session.cancel, { sessionId });
    return { outcome: { outcome: "cancelled" } };
  };
  met.cancelled = (await prompt("Write once more.")).stopReason;

  met.listed = (await agent.request(methods.agent.session.list, { cwd })).sessions;
  const before = met.updates.length;
  await agent.request(methods.agent.session.close, { sessionId });
  await agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
  met.replayed = met.updates.slice(before);
  try {
    await agent.request(methods.agent.session.prompt, { sessionId: "nobody", prompt: [{ type: "text", text: "?" }] });
  } catch (e) {
    met.unknown = e.code;
  }
});
console.error(JSON.stringify(met));
process.exit(0);
