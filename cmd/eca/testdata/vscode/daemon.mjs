// A daemon that misbehaves: daemon.mjs KIND.
const kind = process.argv[2];
const frame = (text) => process.stdout.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
const send = (body) => frame(JSON.stringify({ jsonrpc: '2.0', ...body }));
const notify = (method, params) => send({ method, params });
const content = (chatId, content, role = 'assistant') => notify('chat/contentReceived', { chatId, role, content });

function nonsense(id) {
  process.stdout.write('a line of a library\n\n');
  for (const text of ['{not json', '[1,2,3]', 'null', '{"jsonrpc":"2.0","id":77,"result":{}}', '{"jsonrpc":"2.0","id":"x","method":"editor/nonsense","params":5}']) frame(text);
  for (const method of ['chat/contentReceived', 'chat/opened', 'chat/statusChanged', 'chat/cleared', 'chat/deleted', 'config/updated', 'tool/serverUpdated', 'providers/updated', 'jobs/updated', '$/showMessage', '$/progress', '$/cancelRequest', 'no/such']) {
    for (const params of [null, 5, [], {}, { chatId: 5, content: 'text', chat: 7, jobs: 8, name: {}, id: [], status: {}, message: {}, title: 3 }]) notify(method, params);
  }
  notify('config/updated', { chat: { models: 5, agents: {}, variants: 'x', selectModel: 6, welcomeMessage: {} } });
  for (const type of ['text', 'reasonStarted', 'reasonText', 'reasonFinished', 'toolCallPrepare', 'toolCallRun', 'toolCallRunning', 'toolCalled', 'toolCallRejected', 'usage', 'metadata', 'url', 'image', 'flag', 'hookActionFinished', 'progress', 'unheard-of']) {
    const wrong = { text: 5, id: `${type}-call`, name: 7, server: {}, summary: {}, details: 'x', arguments: 5, outputs: 6, reason: {}, totalTimeMs: 'x', permission: 4, argumentsText: 3, sessionTokens: 'x', limit: 2, title: {}, url: 1, mediaType: 2, base64: 3, output: 4, status: 'x', manualApproval: type === 'toolCallRun' };
    content(id, { type });
    content(id, { type, ...wrong });
    content(id, { type, ...wrong, details: { type: 'fileChange', diff: 5, path: 6 } });
    content(id, { type, ...wrong, id: `${type}-task`, server: 'eca', name: 'task', details: { tasks: 'x' } });
  }
}

function answer({ id, method, params }) {
  const chatId = params?.chatId;
  if (method === 'initialize') return send({ id, result: { chatWelcomeMessage: `The daemon ${kind}` } });
  if (method === 'initialized' && kind === 'dies') process.exit(3);
  if (method === 'exit') process.exit(0);
  if (id === undefined) return undefined;
  if (method !== 'chat/prompt') return send({ id, result: method === 'chat/list' ? { chats: [] } : {} });
  if (kind === 'mute') return undefined;
  send({ id, result: { chatId, model: 'm', status: 'prompting' } });
  if (kind === 'malformed') nonsense(chatId);
  if (kind === 'huge') {
    const piece = `${'some words of an answer '.repeat(40)}\n\n`.repeat(10);
    for (let sent = 0; sent < 50e6; sent += piece.length) content(chatId, { type: 'text', text: piece });
  }
  content(chatId, { type: 'text', text: '\n\nthe end of it' });
  return content(chatId, { type: 'progress', state: 'finished' }, 'system');
}

let rest = Buffer.alloc(0);
process.stdin.on('data', (chunk) => {
  rest = Buffer.concat([rest, chunk]);
  for (;;) {
    const header = rest.indexOf('\r\n\r\n');
    const length = Number(/Content-Length: (\d+)/.exec(rest.toString('latin1', 0, Math.max(0, header)))?.[1]);
    if (header < 0 || rest.length < header + 4 + length) return;
    const message = JSON.parse(rest.toString('utf8', header + 4, header + 4 + length));
    rest = rest.subarray(header + 4 + length);
    if (kind !== 'hangs') answer(message);
  }
});
process.stdin.on('end', () => process.exit(0));
