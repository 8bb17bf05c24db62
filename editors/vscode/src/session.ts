// Passes messages between the daemon and the page, answers the daemon's editor requests, and
// keeps questions and calls until a page attaches.
import * as vscode from "vscode";
import { answerEditor, isEditorRequest } from "./editor";
import type { Message } from "./frames";
import { Status } from "./status";
import { diskFolders, type Supervisor } from "./supervisor";
import { line, reason } from "./text";

/** The session's view of a page. */
export interface Page {
  /** Sends a batch of messages; resolves when it has been delivered. */
  post(batch: Message[]): Thenable<boolean>;
  readonly visible: boolean;
}

/** The handler of the page's requests to the host. */
export interface HostHandlers {
  open(path: string, diff: string | undefined): Promise<void>;
}

/** The least time between two batches, in ms: one per frame, so that the page stays responsive to keys. */
const batchInterval = 16;
/** How long the next batch waits for the delivery of the one before, in ms. */
const deliveryLimit = 2_000;

export class Session implements vscode.Disposable {
  readonly status: Status;
  private page: Page | undefined;
  private attached = false;
  private generation = 0; // of the page: answers to requests of an earlier page are dropped
  private outbox: Message[] = [];
  private delivering = false;
  private questions: Message[] = []; // not answered yet
  private pendingCalls: Message[] = []; // sent once the page attaches
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly supervisor: Supervisor,
    private readonly log: vscode.LogOutputChannel,
    private readonly handlers: HostHandlers,
    private readonly version: string,
  ) {
    this.status = new Status(supervisor, () => void this.notifyWaiting());
    supervisor.onMessage = (message) => this.fromDaemon(message);
    this.subscriptions = [this.status, supervisor.onState((state) => {
      if (state.kind !== "running") this.questions = [];
      this.announce();
    })];
  }

  setPage(page: Page | undefined): void {
    this.page = page;
    this.attached = this.delivering = false;
    this.generation++;
    this.outbox = [];
  }

  /** Tells the page whether the daemon is running. */
  private announce(): void {
    const { kind, problem } = this.supervisor.state;
    if (kind !== "running") this.attached = false;
    this.post({ jsonrpc: "2.0", method: "host/state", params: { open: kind === "running", ...(problem ? { problem } : {}) } });
  }

  // From the daemon.

  private fromDaemon(message: Message): void {
    const { id, method } = message;
    if (method === undefined) return this.toPageAnswer(message);
    this.status.fromDaemon(message);
    if (id === undefined) {
      if (method === "$/showMessage") return void this.showMessage(message.params);
      if (method === "rewrite/contentReceived") return this.rewrites.fire(message.params);
      if (method === "$/cancelRequest") this.questions = this.questions.filter((one) => one.id !== (message.params as { id?: unknown } | null)?.id);
      if (this.attached) this.post(message);
    } else if (isEditorRequest(method)) {
      void this.answerEditor(id, method, message.params);
    } else if (method === "chat/askQuestion") {
      this.questions.push(message);
      if (this.attached) this.post(message);
      void this.notifyWaiting();
    } else {
      this.supervisor.daemon?.send({ jsonrpc: "2.0", id, error: { code: -32601, message: `VS Code does not know ${line(method, 80)}` } });
    }
  }

  private readonly rewrites = new vscode.EventEmitter<unknown>();
  readonly onRewrite = this.rewrites.event;

  private async answerEditor(id: string | number, method: string, params: unknown): Promise<void> {
    const { daemon } = this.supervisor;
    try {
      daemon?.send({ jsonrpc: "2.0", id, result: await answerEditor(method, params) });
    } catch (error) {
      this.log.warn(`${method}: ${reason(error)}`);
      daemon?.send({ jsonrpc: "2.0", id, error: { code: -32603, message: reason(error) } });
    }
  }

  private async showMessage(params: unknown): Promise<void> {
    const { type, message } = (params ?? {}) as { type?: string; message?: string };
    const text = line(message, 600);
    const log = "Show Log";
    const show = type === "error" ? vscode.window.showErrorMessage : type === "warning" ? vscode.window.showWarningMessage : vscode.window.showInformationMessage;
    const buttons = type === "error" || type === "warning" ? [log] : [];
    if ((await show(`eca: ${text}`, ...buttons)) === log) this.log.show();
  }

  /** Notifies the user of the call or question that waits, if the page is not visible. */
  private async notifyWaiting(): Promise<void> {
    if (this.page?.visible) return;
    const show = "Show";
    const call = this.status.waiting[0];
    const question = (this.questions.at(-1)?.params as { question?: string } | undefined)?.question;
    const text = call ? `eca waits for your approval: ${line(call, 200)}` : `eca asks: ${line(question, 200)}`;
    if ((await vscode.window.showInformationMessage(text, show)) === show) await vscode.commands.executeCommand("eca.open");
  }

  private toPageAnswer(message: Message): void {
    const [generation, id] = String(message.id).split("/");
    if (generation !== `page${String(this.generation)}` || id === undefined) return;
    this.post({ ...message, id: Number(id) });
  }

  // To the page.

  private post(message: Message): void {
    this.outbox.push(message);
    if (!this.delivering) void this.deliver();
  }

  /** Delivers one batch at a time; messages posted meanwhile form the next batch. */
  private async deliver(): Promise<void> {
    const { page, generation } = this;
    if (!page) {
      this.outbox = [];
      return;
    }
    this.delivering = true;
    while (this.outbox.length > 0 && generation === this.generation) {
      const batch = this.outbox;
      this.outbox = [];
      let timer: NodeJS.Timeout | undefined;
      const timedOut = new Promise((resolve) => (timer = setTimeout(resolve, deliveryLimit)));
      await Promise.all([Promise.race([page.post(batch), timedOut]), new Promise((resolve) => setTimeout(resolve, batchInterval))]);
      clearTimeout(timer);
    }
    if (generation === this.generation) this.delivering = false;
  }

  /** Calls the page if it is attached. */
  call(method: string, params: object = {}): void {
    if (this.attached) this.post({ jsonrpc: "2.0", method, params });
  }

  /** Calls the page, now or as soon as one attaches. */
  callLater(method: string, params: object = {}): void {
    if (this.attached) this.call(method, params);
    else this.pendingCalls.push({ jsonrpc: "2.0", method, params });
  }

  // From the page.

  fromPage(message: Message): void {
    const { daemon } = this.supervisor;
    const { id, method } = message;
    switch (method) {
      case "host/ready":
        this.attached = false;
        this.generation++;
        this.delivering = false;
        this.outbox = [];
        this.announce();
        if (this.supervisor.state.kind === "stopped") void this.supervisor.start().catch(() => undefined); // the state says why
        return;
      case "host/attach":
        return id === undefined ? undefined : this.attach(id);
      case "host/open": {
        const { path, diff } = (message.params ?? {}) as { path?: unknown; diff?: unknown };
        if (typeof path === "string") void this.handlers.open(path, typeof diff === "string" ? diff : undefined);
        return;
      }
    }
    if (method === undefined) {
      if (!this.questions.some((one) => one.id === id)) return;
      this.questions = this.questions.filter((one) => one.id !== id);
      this.status.fromPage(message);
      daemon?.send(message);
      return;
    }
    this.status.fromPage(message);
    const params = withCursor(message.params);
    if (id === undefined) daemon?.notify(method, params);
    else daemon?.send({ ...message, params, id: `page${String(this.generation)}/${String(id)}` });
  }

  /** Answers the page's attach request, then sends it the open questions and the pending calls. */
  private attach(id: string | number): void {
    const folders = diskFolders().map((one) => one.uri.fsPath);
    this.attached = true;
    this.post({ jsonrpc: "2.0", id, result: { host: "vscode", version: this.version, folders, initialize: this.supervisor.welcome } });
    for (const one of [...this.questions, ...this.pendingCalls]) this.post(one);
    this.pendingCalls = [];
  }

  dispose(): void {
    for (const one of this.subscriptions) one.dispose();
    this.rewrites.dispose();
  }
}

/** Fills in the position of cursor contexts: the page cannot see the editor's cursor. */
function withCursor(params: unknown): unknown {
  const { contexts } = (params ?? {}) as { contexts?: { type?: string; path?: string }[] };
  if (!Array.isArray(contexts) || !contexts.some((one) => one.type === "cursor")) return params;
  const editor = lastEditor();
  const filled = contexts.flatMap((one) => {
    if (one.type !== "cursor") return [one];
    if (!editor) return [];
    const { start, end } = editor.selection;
    const at = (position: vscode.Position): object => ({ line: position.line + 1, character: position.character + 1 });
    return [{ type: "cursor", path: editor.document.uri.fsPath, position: { start: at(start), end: at(end) } }];
  });
  return { ...(params as object), contexts: filled };
}

/** The editor that the user was in last: it stays the active editor while the view has the focus. */
function lastEditor(): vscode.TextEditor | undefined {
  return [vscode.window.activeTextEditor, ...vscode.window.visibleTextEditors].find((one) => one?.document.uri.scheme === "file");
}
