// A server made with MCP's SDK for TypeScript: node typescript.cjs MODULES [PORT]. Without a port it
// speaks stdio.
const { randomUUID } = require('node:crypto');
const http = require('node:http');
const load = require('node:module').createRequire(process.argv[2] + '/none.js');
const { McpServer } = load('@modelcontextprotocol/sdk/server/mcp.js');
const { StdioServerTransport } = load('@modelcontextprotocol/sdk/server/stdio.js');
const { StreamableHTTPServerTransport } = load('@modelcontextprotocol/sdk/server/streamableHttp.js');
const { InMemoryTaskStore, InMemoryTaskMessageQueue } = load('@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js');
const { z } = load('zod');

let cancel;
const cancelled = new Promise((done) => { cancel = done; });
const say = (text) => ({ content: [{ type: 'text', text }] });

function serve() {
  const server = new McpServer({ name: 'typescript', version: '1' }, {
    capabilities: { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } },
    taskStore: new InMemoryTaskStore(), taskMessageQueue: new InMemoryTaskMessageQueue(),
  });
  server.registerTool('add', { inputSchema: { a: z.number(), b: z.number() }, outputSchema: { sum: z.number() } },
    ({ a, b }) => ({ content: [{ type: 'text', text: `{"sum":${a + b}}` }], structuredContent: { sum: a + b } }));
  server.registerTool('form', {}, async () => {
    const answer = await server.server.elicitInput({
      message: 'Which colour?',
      requestedSchema: { type: 'object', properties: { colour: { type: 'string', enum: ['red', 'blue'] } }, required: ['colour'] },
    });
    return say(`${answer.action} ${answer.content?.colour}`);
  });
  server.registerTool('page', {}, async () => {
    const answer = await server.server.elicitInput({ mode: 'url', message: 'Pay', elicitationId: '1', url: 'https://pay.example/1' });
    return say(`page: ${answer.action}`);
  });
  server.registerTool('think', {}, async () => {
    const answer = await server.server.createMessage({ maxTokens: 50, messages: [{ role: 'user', content: { type: 'text', text: 'Think of a number.' } }] });
    return say(`thought: ${answer.content.text}`);
  });
  server.registerTool('wait', {}, async (extra) => {
    let steps = 0;
    const report = () => extra.sendNotification({ method: 'notifications/progress', params: { progressToken: extra._meta.progressToken, progress: ++steps, message: 'on my way' } });
    const timer = setInterval(report, 200);
    await new Promise((done) => extra.signal.addEventListener('abort', done));
    clearInterval(timer);
    cancel();
    return say('never seen');
  });
  server.registerTool('cancelled', {}, async () => {
    await cancelled;
    return say('the call was cancelled');
  });
  server.registerTool('grow', {}, () => {
    server.registerTool('grown', {}, () => say('I am new'));
    return say('more');
  });
  server.experimental.tasks.registerToolTask('task', { inputSchema: {}, execution: { taskSupport: 'required' } }, {
    createTask: async (args, extra) => {
      const task = await extra.taskStore.createTask({ ttl: 60000, pollInterval: 20 });
      setTimeout(() => extra.taskStore.storeTaskResult(task.taskId, 'completed', say('the task is done')), 50);
      return { task };
    },
    getTask: (args, extra) => extra.taskStore.getTask(extra.taskId),
    getTaskResult: (args, extra) => extra.taskStore.getTaskResult(extra.taskId),
  });
  server.registerResource('note', 'note://one', { mimeType: 'text/plain' }, (uri) => ({ contents: [{ uri: uri.href, text: 'the note says plum' }] }));
  server.registerPrompt('greet', { argsSchema: { name: z.string() } }, ({ name }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Greet ${name}.` } }] }));
  return server;
}

if (!process.argv[3]) {
  serve().connect(new StdioServerTransport());
} else {
  const sessions = new Map();
  http.createServer(async (req, res) => {
    let body = '';
    for await (const piece of req) body += piece;
    let transport = sessions.get(req.headers['mcp-session-id']);
    if (!transport) {
      transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: (id) => sessions.set(id, transport) });
      await serve().connect(transport);
    }
    await transport.handleRequest(req, res, body ? JSON.parse(body) : undefined);
  }).listen(Number(process.argv[3]), '127.0.0.1', () => console.error('listening on port ' + process.argv[3]));
}
