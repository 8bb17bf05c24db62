// The page's connection to the daemon: sends the user's actions as messages, and applies the daemon's
// messages to the state. Components read `state` and call these methods.
import { Rpc, type Port, type Problem } from "./rpc.ts";
import * as wire from "./protocol.ts";
import { addNotice, apply, chatOf, endTurn, newState, prepend, rootOf, type Call, type Chat, type Question, type State } from "./state.ts";
import { line } from "./text.ts";

/** How many messages are loaded when a chat is opened: few, because each may be long and the first should show soon. */
const openSize = 8;
/** How many messages are loaded when the reader scrolls up. */
const pageSize = 30;

export type Decision = "accept" | "remember" | "reject" | "words";

export interface Connection {
  open: boolean;
  ready: boolean; // attached, and the chat is shown
  problem?: Problem; // why it is not ready, if the user should know
  host: "browser" | "vscode";
  version: string;
  folders: readonly string[];
}

export class Client {
  readonly rpc: Rpc;
  state: State = newState();
  connection: Connection = { open: false, ready: false, host: "browser", version: "", folders: [] };
  current: string;
  /** Text that the host adds to the prompt; the composer takes it from here. */
  inserted: { text: string; contexts: wire.ContextItem[] } | undefined;
  /** Decides about the call that the page shows. If only another chat has a waiting call, that chat is shown first. */
  onDecision: (decision: Decision) => void = () => undefined;
  onFocus: () => void = () => undefined;
  private listeners = new Set<() => void>();
  private scheduled = false; // a rendering is scheduled, or the pause after one has not ended
  private dirty = false; // something has changed since the last rendering
  private opening = new Set<string>();
  private generation = 0;

  constructor(readonly port: Port) {
    this.current = port.load().chat ?? crypto.randomUUID();
    port.save({ ...port.load(), chat: this.current });
    this.rpc = new Rpc(port);
    this.rpc.onCall = (method, params, id) => this.called(method, params, id);
    port.onState = (open, problem) => void this.connected(open, problem);
  }

  /** Calls back, once per frame, after changes. */
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  changed(): void {
    this.dirty = true;
    if (this.scheduled) return;
    this.scheduled = true;
    const run = (): void => {
      const began = performance.now();
      this.dirty = false;
      for (const listener of this.listeners) listener();
      // Pauses for as long as the frame took, so that a page that renders slowly still handles keys.
      setTimeout(() => setTimeout(() => {
        this.scheduled = false;
        if (this.dirty) this.changed();
      }, performance.now() - began));
    };
    // A page in the background gets no animation frames, so a timer keeps it up to date.
    if (document.hidden) setTimeout(run, 250);
    else requestAnimationFrame(run);
  }

  get chat(): Chat {
    return chatOf(this.state, this.current);
  }

  /** A setting of the chat; the default is the session's. */
  setting<K extends "model" | "agent" | "variant" | "variants" | "trust">(key: K): Chat[K] {
    const own = this.chat[key];
    return own !== undefined ? own : (this.state[key] as Chat[K]);
  }

  private async connected(open: boolean, problem?: Problem): Promise<void> {
    this.rpc.setOpen(open);
    const { host, version, folders } = this.connection;
    this.connection = { open, ready: false, host, version, folders, ...(problem ? { problem } : {}) };
    if (open) await this.attach();
    this.changed();
  }

  /** Loads the whole state from the daemon, because the page may have missed messages. */
  private async attach(): Promise<void> {
    const generation = ++this.generation;
    const steer = this.state.chats.get(this.current)?.steer;
    const fresh = newState();
    try {
      this.state = fresh;
      const info = await this.rpc.request<wire.Attached>("host/attach", {});
      this.connection = { ...this.connection, host: info.host, version: info.version ?? "", folders: info.folders ?? [] };
      fresh.welcome ||= info.initialize?.chatWelcomeMessage ?? "";
      const { chats } = await this.rpc.request<{ chats?: wire.ChatSummary[] }>("chat/list", {});
      if (generation !== this.generation) return;
      fresh.list = chats ?? [];
      if (fresh.list.some((one) => one.id === this.current) || fresh.chats.get(this.current)?.known) await this.open(this.current);
      if (steer) this.chat.steer = steer;
      this.connection = { ...this.connection, ready: true };
    } catch (error) {
      if (generation === this.generation && this.rpc.open) {
        this.connection = { ...this.connection, problem: { text: "The chats could not be read.", remedy: "Reload the page." } };
        this.fail("The chats could not be read", error);
      }
    }
    this.changed();
  }

  private called(method: string, params: unknown, id?: string | number): void {
    if (method === "chat/askQuestion" && id !== undefined) {
      const p = params as wire.QuestionParams;
      if (!this.state.questions.some((one) => one.id === id)) this.state.questions.push({ id, chatId: p.chatId ?? this.current, params: p });
    } else if (id !== undefined) {
      this.rpc.refuse(id, method);
    } else if (method === "host/insert") {
      this.inserted = params as { text: string; contexts: wire.ContextItem[] };
    } else if (method === "host/newChat") {
      this.newChat();
    } else if (method === "host/focus") {
      this.onFocus();
    } else if (method === "host/stop") {
      this.stop();
    } else if (method === "host/decide") {
      this.onDecision((params as { decision: Decision }).decision);
    } else {
      try {
        this.notified(method, params);
      } catch (error) {
        this.unusable(method, error);
      }
    }
    this.changed();
  }

  private reported = 0; // the generation in which an unusable message was reported last

  /** Reports a message that the page cannot use, once per connection: there may be many. */
  private unusable(method: string, error: unknown): void {
    console.warn(method, error);
    if (this.reported === this.generation) return;
    this.reported = this.generation;
    this.fail(`eca sent ${line(method, 60)}, which the page cannot use. If something is missing, restart eca`, error);
  }

  private notified(method: string, params: unknown): void {
    const { chatId } = (params ?? {}) as { chatId?: string };
    const before = chatId !== undefined ? this.state.chats.get(chatId) : undefined;
    const wasRunning = before?.running;
    apply(this.state, method, params);
    if (method === "chat/opened" && chatId !== undefined) {
      // Another page has opened the chat, so the daemon sent its newest messages again.
      if (before?.items.length === 0 && before.before === null && !this.opening.has(chatId)) void this.refreshCursor(chatId);
      else if (!before && !this.opening.has(chatId) && !chatOf(this.state, chatId).parent && this.forking) this.show(chatId);
    }
    if (method === "chat/deleted" && chatId === this.current) this.newChat();
    const chat = chatId !== undefined ? this.state.chats.get(chatId) : undefined;
    if (chat && wasRunning && !chat.running && chat.steer) this.sendSteered(chat);
  }

  private forking = false;

  private async refreshCursor(id: string): Promise<void> {
    const result = await this.rpc.request<wire.HistoryResult>("chat/history", { chatId: id, limit: openSize }).catch(() => undefined);
    if (result?.meta) chatOf(this.state, id).before = result.meta.beforeCursor ?? null;
    this.changed();
  }

  /** Tells the user about something that went wrong. */
  fail(what: string, error: unknown): void {
    const why = error instanceof Error ? error.message : String(error);
    this.state.notices.push({ key: ++this.state.lastKey, type: "error", text: `${what}: ${why}` });
    this.changed();
  }

  dismiss(key: number): void {
    this.state.notices = this.state.notices.filter((one) => one.key !== key);
    this.changed();
  }

  /** Runs a request whose failure the user sees. */
  async try<R>(what: string, method: string, params: unknown): Promise<R | undefined> {
    try {
      return await this.rpc.request<R>(method, params);
    } catch (error) {
      this.fail(what, error);
      return undefined;
    }
  }

  // Chats.

  show(id: string): void {
    this.current = id;
    this.forking = false;
    this.port.save({ ...this.port.load(), chat: id });
    this.changed();
  }

  newChat(): void {
    const empty = this.chat.items.length === 0 && !this.chat.known;
    if (!empty) this.show(crypto.randomUUID());
  }

  /** Shows a stored chat: loads its newest messages, and the cursor for earlier ones. */
  async open(id: string): Promise<void> {
    this.show(id);
    this.opening.add(id);
    const result = await this.try<wire.OpenResult>("The chat was not opened", "chat/open", { chatId: id, limit: openSize });
    this.opening.delete(id);
    const chat = chatOf(this.state, id);
    if (result?.found) {
      const { model, agent, variant, variants, trust } = result.selection ?? {};
      Object.assign(chat, { known: true, model: model ?? undefined, agent, variant, variants, trust, before: result.meta?.beforeCursor ?? null });
      if (!chat.running) endTurn(chat);
    } else if (result) {
      this.fail("The chat was not opened", result.error?.message ?? "it is not stored any more");
    }
    chat.rev++;
    this.changed();
  }

  /** Selects a chat, and loads it unless the page already has its messages. */
  select(id: string): void {
    if (this.state.chats.get(id)?.items.length) this.show(id);
    else void this.open(id);
  }

  private earlier: Promise<number> | undefined;

  /** Loads the messages before the first one; returns how many items were added. */
  async loadEarlier(chat: Chat): Promise<number> {
    if (!chat.before) return 0;
    this.earlier ??= this.try<wire.HistoryResult>("Earlier messages were not read", "chat/history", { chatId: chat.id, before: chat.before, limit: pageSize }).then((result) => {
      this.earlier = undefined;
      if (!result) return 0;
      if (result.error) {
        chat.before = null;
        this.fail("Earlier messages were not read", `${result.error.message ?? ""}; open the chat again`);
        return 0;
      }
      const added = prepend(this.state, chat, result.contents ?? [], result.meta?.beforeCursor);
      this.changed();
      return added;
    });
    return this.earlier;
  }

  async refreshList(): Promise<void> {
    const result = await this.try<{ chats?: wire.ChatSummary[] }>("The chats were not listed", "chat/list", {});
    if (result) this.state.list = result.chats ?? [];
    this.changed();
  }

  async remove(id: string): Promise<void> {
    await this.try("The chat was not deleted", "chat/delete", { chatId: id });
    this.state.list = this.state.list.filter((one) => one.id !== id);
    this.changed();
  }

  async rename(chat: Chat, title: string): Promise<void> {
    if (chat.known) await this.try("The chat was not renamed", "chat/update", { chatId: chat.id, title });
  }

  async rollback(chat: Chat, contentId: string, include: string[]): Promise<void> {
    await this.try("The chat was not rolled back", "chat/rollback", { chatId: chat.id, contentId, include });
  }

  async fork(chat: Chat, contentId: string): Promise<void> {
    this.forking = true;
    await this.try("The chat was not forked", "chat/fork", { chatId: chat.id, contentId });
    this.forking = false;
  }

  async flag(chat: Chat, contentId: string, text: string): Promise<void> {
    await this.try("The flag was not set", "chat/addFlag", { chatId: chat.id, contentId, text });
  }

  // Turns.

  /** Waits while the daemon starts. False: it cannot be reached, and a notice says so. */
  async reach(): Promise<boolean> {
    while (!this.connection.ready) {
      const { problem } = this.connection;
      if (problem) {
        this.fail("The prompt was not sent", `${problem.text} ${problem.remedy}`);
        return false;
      }
      await new Promise<void>((resolve) => {
        const leave = this.subscribe(() => {
          leave();
          resolve();
        });
      });
    }
    return true;
  }

  /** Sends a prompt, or steers the running turn. False: it was not sent. */
  async send(message: string, contexts: wire.ContextItem[]): Promise<boolean> {
    const chat = this.chat;
    if (chat.running && contexts.length === 0 && !message.startsWith("/")) {
      chat.steer = chat.steer ? `${chat.steer}\n${message}` : message;
      this.rpc.notify("chat/promptSteer", { chatId: chat.id, message });
      this.changed();
      return true;
    }
    return this.prompt(chat, message, contexts);
  }

  private async prompt(chat: Chat, message: string, contexts: wire.ContextItem[]): Promise<boolean> {
    chat.running = true;
    chat.progress = "Sending";
    const params = {
      chatId: chat.id, message, contexts, model: chat.model ?? this.state.model, agent: chat.agent ?? this.state.agent,
      variant: this.setting("variant") ?? undefined, trust: this.setting("trust"),
    };
    chat.rev++;
    this.changed();
    try {
      await this.rpc.request("chat/prompt", params);
      chat.known = true;
      return true;
    } catch (error) {
      endTurn(chat);
      addNotice(this.state, chat, `The prompt was not sent: ${error instanceof Error ? error.message : String(error)}`, true);
      return false;
    } finally {
      this.changed();
    }
  }

  /** Sends, as the next prompt, the steering text that the ended turn has not read. */
  private sendSteered(chat: Chat): void {
    const words = chat.steer ?? "";
    delete chat.steer;
    void this.prompt(chat, words, []);
  }

  unsteer(chat: Chat): string {
    const words = chat.steer ?? "";
    delete chat.steer;
    this.rpc.notify("chat/promptSteerRemove", { chatId: chat.id });
    this.changed();
    return words;
  }

  stop(): void {
    const chat = rootOf(this.state, this.chat);
    if (!chat.running) return;
    delete chat.steer;
    chat.stopping = true;
    this.rpc.notify("chat/promptStop", { chatId: chat.id });
    this.changed();
  }

  approve(chat: Chat, call: Call, save?: "session"): void {
    call.stage = "running";
    call.rev++;
    chat.rev++;
    this.rpc.notify("chat/toolCallApprove", { chatId: chat.id, toolCallId: call.id, ...(save ? { save } : {}) });
    this.changed();
  }

  /** Rejects a call, which ends the turn. Words become the next prompt. */
  reject(chat: Chat, call: Call, words = ""): void {
    if (words) {
      const root = rootOf(this.state, chat);
      root.steer = root.steer ? `${root.steer}\n${words}` : words;
      if (chat.parent) this.rpc.notify("chat/promptSteer", { chatId: root.id, message: words }); // the parent's turn continues with them
    }
    call.stage = "rejected";
    call.rev++;
    chat.rev++;
    this.rpc.notify("chat/toolCallReject", { chatId: chat.id, toolCallId: call.id });
    this.changed();
  }

  answer(question: Question, words: string | null): void {
    this.state.questions = this.state.questions.filter((one) => one !== question);
    this.rpc.answer(question.id, { answer: words, cancelled: words === null });
    this.changed();
  }

  // Settings.

  selectModel(model: string, variant?: string): void {
    const chat = this.chat;
    chat.model = model;
    chat.variant = variant ?? null;
    this.rpc.notify("chat/selectedModelChanged", { chatId: chat.id, model, ...(variant ? { variant } : {}) });
    this.changed();
  }

  selectAgent(agent: string): void {
    this.chat.agent = agent;
    this.rpc.notify("chat/selectedAgentChanged", { chatId: this.chat.id, agent });
    this.changed();
  }

  setTrust(trust: boolean): void {
    this.chat.trust = trust;
    if (this.chat.known) void this.try("The setting was not changed", "chat/update", { chatId: this.chat.id, trust });
    this.changed();
  }

  /** Completions of a word that begins with @, # or /. */
  async complete(sign: "@" | "#" | "/", query: string): Promise<wire.ContextItem[] | wire.Command[]> {
    const params = { chatId: this.chat.known ? this.chat.id : undefined, query, contexts: [] };
    if (sign === "/") return (await this.rpc.request<{ commands?: wire.Command[] }>("chat/queryCommands", params)).commands ?? [];
    if (sign === "#") return (await this.rpc.request<{ files?: wire.ContextItem[] }>("chat/queryFiles", params)).files ?? [];
    const { contexts } = await this.rpc.request<{ contexts?: wire.ContextItem[] }>("chat/queryContext", params);
    // A browser has no cursor in a file.
    return (contexts ?? []).filter((one) => one.type !== "cursor" || this.connection.host !== "browser");
  }

  /** Shows a file or a change in the host's editor, if it has one. */
  openInEditor(details: wire.Details): void {
    this.rpc.notify("host/open", { path: details.path, diff: details.diff });
  }
}
