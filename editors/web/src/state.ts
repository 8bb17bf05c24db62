// The state of the page, and how the daemon's messages change it. Nothing here is shown or sent.
import type * as wire from "./protocol.ts";
import { pretty } from "./text.ts";

interface Base {
  key: number;
  rev: number; // changes with each change of the item
}

export type CallStage = "preparing" | "waiting" | "running" | "done" | "failed" | "rejected";

export interface Call extends Base {
  kind: "call";
  id: string;
  stage: CallStage;
  name: string;
  server: string;
  summary?: string;
  details?: wire.Details;
  arguments?: Record<string, unknown>;
  size: number; // of the arguments received so far
  permission?: string;
  outputs: string[];
  reason?: string;
  ms?: number;
}

export type Item =
  | (Base & { kind: "user"; text: string; contentId?: string })
  | (Base & { kind: "assistant"; text: string; done: boolean })
  | (Base & { kind: "notice"; text: string; failed: boolean })
  | (Base & { kind: "reason"; id: string; text: string; done: boolean; ms?: number })
  | (Base & { kind: "hook"; name: string; failed: boolean; output: string })
  | (Base & { kind: "image"; mediaType: string; base64: string })
  | (Base & { kind: "flag"; text: string; contentId?: string })
  | Call;

export interface Usage {
  tokens: number;
  limit?: number;
  cost?: string;
  lastCost?: string;
}

export interface Chat {
  id: string;
  parent?: string;
  title?: string;
  items: Item[];
  calls: Map<string, Call>;
  reasons: Map<string, Item & { kind: "reason" }>;
  running: boolean;
  stopping: boolean;
  progress?: string;
  usage?: Usage;
  tasks?: wire.Details;
  model?: string;
  agent?: string;
  variant?: string | null;
  variants?: string[];
  trust?: boolean;
  steer?: string; // sent to the running turn, which has not read it yet
  before?: string | null; // cursor of the messages before the first
  known: boolean; // the daemon knows the chat
  rev: number;
}

export interface Question {
  id: string | number;
  chatId: string;
  params: wire.QuestionParams;
}

export interface Notice {
  key: number;
  type: string;
  text: string;
}

export interface State {
  chats: Map<string, Chat>;
  list: wire.ChatSummary[];
  models: string[];
  agents: string[];
  variants: string[];
  model?: string;
  agent?: string;
  variant?: string | null;
  trust: boolean;
  welcome: string;
  servers: Map<string, wire.ToolServer>;
  providers: Map<string, wire.Provider>;
  jobs: wire.Job[];
  questions: Question[];
  notices: Notice[];
  starting: Map<string, string>; // running tasks of the daemon's start: id and title
  lastKey: number;
}

export function newState(): State {
  return {
    chats: new Map(), list: [], models: [], agents: [], variants: [], trust: false, welcome: "", servers: new Map(),
    providers: new Map(), jobs: [], questions: [], notices: [], starting: new Map(), lastKey: 0,
  };
}

export function newChat(id: string, parent?: string): Chat {
  return { id, ...(parent ? { parent } : {}), items: [], calls: new Map(), reasons: new Map(), running: false, stopping: false, known: false, rev: 0 };
}

export function chatOf(state: State, id: string, parent?: string): Chat {
  let chat = state.chats.get(id);
  if (!chat) state.chats.set(id, (chat = newChat(id, parent)));
  return chat;
}

/** The top chat of a subagent's chat: only it has a prompt. */
export function rootOf(state: State, chat: Chat): Chat {
  for (let depth = 0; chat.parent && depth < 32; depth++) {
    const parent = state.chats.get(chat.parent);
    if (!parent) break;
    chat = parent;
  }
  return chat;
}

type NewItem<T = Item> = T extends Item ? Omit<T, "key" | "rev"> : never;

function add(state: State, chat: Chat, item: NewItem): Item {
  const last = chat.items.at(-1);
  if (last?.kind === "assistant" && !last.done) touch(last).done = true;
  const complete = { ...item, key: ++state.lastKey, rev: 0 } as Item;
  chat.items.push(complete);
  return complete;
}

function touch<T extends Item>(item: T): T {
  item.rev++;
  return item;
}

export function addNotice(state: State, chat: Chat, text: string, failed: boolean): void {
  add(state, chat, { kind: "notice", text, failed });
  chat.rev++;
}

const stages: Record<string, CallStage> = {
  toolCallPrepare: "preparing", toolCallRun: "running", toolCallRunning: "running", toolCalled: "done", toolCallRejected: "rejected",
};

function call(state: State, chat: Chat, c: wire.Content): void {
  const stage = stages[c.type];
  if (!stage || c.id === undefined) return;
  let one = chat.calls.get(c.id);
  if (!one) {
    one = add(state, chat, { kind: "call", id: c.id, stage, name: c.name ?? "?", server: c.server ?? "?", size: 0, outputs: [] }) as Call;
    chat.calls.set(c.id, one);
  }
  touch(one).stage = stage;
  if (c.type === "toolCallRun" && c.manualApproval) one.stage = "waiting";
  if (c.type === "toolCalled" && c.error) one.stage = "failed";
  one.summary = c.summary ?? one.summary;
  if (c.details && typeof c.details === "object") one.details = c.details;
  one.arguments = c.arguments ?? one.arguments;
  one.permission = c.permission?.reason ?? one.permission;
  one.reason = c.reason ?? one.reason;
  one.ms = c.totalTimeMs ?? one.ms;
  one.size += c.argumentsText?.length ?? 0;
  if (Array.isArray(c.outputs)) one.outputs = c.outputs.map((output) => output.text ?? "");
  if (c.type === "toolCallPrepare" && one.details?.subagentChatId) one.stage = "running";
}

function text(state: State, chat: Chat, c: wire.Content, role: string | undefined): void {
  const added = pretty(c.text ?? "");
  if (role === "user") {
    add(state, chat, { kind: "user", text: added, ...(c.contentId ? { contentId: c.contentId } : {}) });
    if (chat.steer?.trim() === added.trim()) delete chat.steer;
    return;
  }
  const last = chat.items.at(-1);
  if (role === "system") {
    if (last?.kind === "notice") touch(last).text += added;
    else add(state, chat, { kind: "notice", text: added, failed: false });
  } else {
    answer(state, chat, added);
  }
}

/** A longer answer is split into several items, so that each renders quickly. */
const maxAnswer = 32_000;

function answer(state: State, chat: Chat, added: string): void {
  for (;;) {
    const last = chat.items.at(-1);
    const item = last?.kind === "assistant" ? last : (add(state, chat, { kind: "assistant", text: "", done: false }) as Item & { kind: "assistant" });
    const room = maxAnswer - item.text.length;
    touch(item).done = false;
    if (added.length <= room) {
      item.text += added;
      return;
    }
    const blank = added.lastIndexOf("\n\n", Math.max(0, room));
    const end = blank >= 0 ? blank + 2 : (added.lastIndexOf("\n", Math.max(0, room)) + 1 || Math.max(0, room));
    item.text += added.slice(0, end);
    added = added.slice(end);
    const fence = openFence(item.text);
    if (fence) item.text += `${item.text.endsWith("\n") ? "" : "\n"}${fence.match(/^[`~]+/)?.[0] ?? ""}\n`;
    item.done = true;
    add(state, chat, { kind: "assistant", text: fence ? `${fence}\n` : "", done: false });
  }
}

/** The opening fence of a code block that is not closed yet; else empty. */
export function openFence(text: string): string {
  let open = "";
  for (const [line] of text.matchAll(/^ {0,3}(?:`{3,}|~{3,}).*$/gm)) {
    const fence = line.trim();
    const sign = /^[`~]+/.exec(fence)?.[0] ?? "";
    if (!open) open = fence;
    else if (fence === sign && open.startsWith(sign[0] ?? "") && sign.length >= (/^[`~]+/.exec(open)?.[0].length ?? 0)) open = "";
  }
  return open;
}

/** Marks a chat's turn as ended. */
export function endTurn(chat: Chat, reason?: string): void {
  chat.running = chat.stopping = false;
  delete chat.progress;
  const last = chat.items.at(-1);
  if (last?.kind === "assistant" && !last.done) touch(last).done = true;
  if (last?.kind === "notice" && reason === "failed") touch(last).failed = true;
  for (const one of chat.reasons.values()) if (!one.done) touch(one).done = true;
}

function content(state: State, chat: Chat, c: wire.Content, role: string | undefined): void {
  switch (c.type) {
    case "text":
      return text(state, chat, c, role);
    case "progress":
      if (c.state === "finished") endTurn(chat, c.reason);
      else [chat.running, chat.progress] = [true, c.text ?? ""];
      return;
    case "reasonStarted":
    case "reasonText":
    case "reasonFinished": {
      const id = c.id ?? "";
      const one = chat.reasons.get(id) ?? (add(state, chat, { kind: "reason", id, text: "", done: false }) as Item & { kind: "reason" });
      chat.reasons.set(id, one);
      touch(one).text += c.text ?? "";
      if (c.type === "reasonFinished") [one.done, one.ms] = [true, c.totalTimeMs];
      return;
    }
    case "usage":
      chat.usage = { tokens: Number(c.sessionTokens) || 0, limit: c.limit?.context, cost: c.sessionCost, lastCost: c.lastMessageCost };
      return;
    case "metadata":
      chat.title = c.title;
      for (const one of state.list) if (one.id === chat.id) one.title = c.title;
      return;
    case "url":
      return text(state, chat, { type: "text", text: `[${c.title ?? c.url ?? ""}](${c.url ?? ""})\n` }, "assistant");
    case "image":
      add(state, chat, { kind: "image", mediaType: c.mediaType ?? "", base64: c.base64 ?? "" });
      return;
    case "flag":
      add(state, chat, { kind: "flag", text: pretty(c.text ?? ""), ...(c.contentId ? { contentId: c.contentId } : {}) });
      return;
    case "hookActionFinished":
      add(state, chat, { kind: "hook", name: c.name ?? "", failed: (c.status ?? 0) !== 0, output: [c.output, typeof c.error === "string" ? c.error : ""].filter(Boolean).join("\n") });
      return;
  }
  if (c.server === "eca" && c.name === "task") {
    if (c.type === "toolCalled" && Array.isArray(c.details?.tasks)) chat.tasks = c.details; // shown as one list, not as calls
    return;
  }
  call(state, chat, c);
}

function received(state: State, p: wire.ContentReceived): void {
  if (!p.content || typeof p.content !== "object") return;
  if (p.chatId === undefined) {
    state.notices.push({ key: ++state.lastKey, type: "info", text: p.content.text ?? "" });
    return;
  }
  const chat = chatOf(state, p.chatId, p.parentChatId);
  chat.known = true;
  chat.rev++;
  content(state, chat, p.content, p.role);
}

function clear(chat: Chat): void {
  Object.assign(chat, { items: [], calls: new Map(), reasons: new Map(), before: null });
  delete chat.tasks;
  delete chat.usage;
  chat.rev++;
}

function configure(state: State, p: { chatId?: string; chat?: wire.ChatConfig }): void {
  const changes = p.chat ?? {};
  const target = p.chatId === undefined ? state : chatOf(state, p.chatId);
  if (Array.isArray(changes.variants)) [target.variants, target.variant] = [changes.variants, null];
  if (changes.selectVariant !== undefined) target.variant = changes.selectVariant;
  if (typeof changes.selectModel === "string") target.model = changes.selectModel;
  if (typeof changes.selectAgent === "string") target.agent = changes.selectAgent;
  if (changes.selectTrust !== undefined) target.trust = changes.selectTrust;
  if (Array.isArray(changes.models)) state.models = changes.models;
  if (Array.isArray(changes.agents)) state.agents = changes.agents;
  state.welcome = changes.welcomeMessage ?? state.welcome;
  if (p.chatId !== undefined) chatOf(state, p.chatId).rev++;
}

function status(state: State, p: { chatId: string; status?: string }): void {
  const chat = state.chats.get(p.chatId);
  for (const one of state.list) if (one.id === p.chatId) one.status = p.status;
  if (!chat) return;
  chat.running = p.status === "running" || p.status === "stopping";
  chat.stopping = p.status === "stopping";
  if (chat.running) chat.progress ??= "";
  chat.rev++;
}

function opened(state: State, p: { chatId: string; title?: string }): void {
  const chat = chatOf(state, p.chatId);
  chat.known = true;
  if (p.title !== undefined) chat.title = p.title;
  chat.rev++;
  if (!chat.parent && !state.list.some((one) => one.id === p.chatId)) {
    state.list.unshift({ id: p.chatId, title: p.title, updatedAt: Date.now() });
  }
}

function named(name: unknown): string {
  if (typeof name !== "string") throw new TypeError("it has no name");
  return name;
}

/** Applies a notification of the daemon, and throws if it cannot be used. Unknown ones are ignored. */
export function apply(state: State, method: string, params: unknown): void {
  if (typeof params !== "object" || params === null) return;
  const p = params as never;
  switch (method) {
    case "chat/contentReceived":
      return received(state, p);
    case "chat/cleared": {
      const { chatId, messages } = p as { chatId: string; messages?: boolean };
      const chat = state.chats.get(chatId);
      if (chat && messages) clear(chat);
      return;
    }
    case "chat/opened":
      return opened(state, p);
    case "chat/statusChanged":
      return status(state, p);
    case "chat/deleted": {
      const { chatId } = p as { chatId: string };
      state.chats.delete(chatId);
      state.list = state.list.filter((one) => one.id !== chatId);
      return;
    }
    case "config/updated":
      return configure(state, p);
    case "tool/serverUpdated":
      state.servers.set(named((p as wire.ToolServer).name), p);
      return;
    case "tool/serverRemoved":
      state.servers.delete((p as wire.ToolServer).name);
      return;
    case "providers/updated":
      state.providers.set(named((p as wire.Provider).id), p);
      return;
    case "jobs/updated":
      state.jobs = [...((p as { jobs?: wire.Job[] }).jobs ?? [])];
      return;
    case "$/showMessage": {
      const { type, message } = p as { type?: string; message?: string };
      if (!state.notices.some((one) => one.text === message)) state.notices.push({ key: ++state.lastKey, type: type ?? "info", text: message ?? "" });
      return;
    }
    case "$/progress": {
      const { type, taskId, title } = p as { type?: string; taskId: string; title?: string };
      if (type === "start") state.starting.set(taskId, title ?? "");
      else state.starting.delete(taskId);
      return;
    }
    case "$/cancelRequest":
      state.questions = state.questions.filter((one) => one.id !== (p as { id: unknown }).id);
      return;
  }
}

/** Puts a page of earlier messages before those of a chat. */
export function prepend(state: State, chat: Chat, contents: readonly wire.ContentReceived[], before: string | null | undefined): number {
  const page = newChat(chat.id);
  for (const one of contents) {
    if (!one.content || typeof one.content !== "object") continue;
    if (one.chatId === chat.id) content(state, page, one.content, one.role);
    else if (one.chatId !== undefined) prependChild(state, one);
  }
  endTurn(page);
  chat.items = [...page.items, ...chat.items];
  chat.calls = new Map([...page.calls, ...chat.calls]);
  chat.reasons = new Map([...page.reasons, ...chat.reasons]);
  chat.tasks ??= page.tasks;
  chat.before = before ?? null;
  chat.rev++;
  return page.items.length;
}

function prependChild(state: State, one: wire.ContentReceived): void {
  received(state, one);
}

/** The calls of a chat and of its subagents that wait for an approval, oldest first. */
export function waitingCalls(state: State, root: Chat): { chat: Chat; call: Call }[] {
  const out: { chat: Chat; call: Call }[] = [];
  for (const chat of state.chats.values()) {
    if (rootOf(state, chat) !== root) continue;
    for (const one of chat.calls.values()) if (one.stage === "waiting") out.push({ chat, call: one });
  }
  return out.sort((a, b) => a.call.key - b.call.key);
}
