// The status bar item: the model, the cost, and how many calls and questions wait for the user.
import * as vscode from "vscode";
import type { Message } from "./frames";
import type { Supervisor } from "./supervisor";
import { line } from "./text";

interface Content {
  type?: string;
  id?: string;
  summary?: string;
  name?: string;
  manualApproval?: boolean;
  sessionCost?: string;
  state?: string;
}

export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("eca.status", vscode.StatusBarAlignment.Right, 50);
  private readonly calls = new Map<string, { chat: string; summary: string }>(); // waiting for approval
  private readonly questions = new Set<unknown>();
  private readonly running = new Set<string>(); // chats
  private readonly subscription: vscode.Disposable;
  private model = "";
  private cost = "";
  private readonly listeners = new vscode.EventEmitter<number>();
  /** Fires with the number of waiting calls and questions when it changes. */
  readonly onWaiting = this.listeners.event;
  private reported = 0;

  constructor(
    private readonly supervisor: Supervisor,
    private readonly notifyWaiting: () => void,
  ) {
    this.item.name = "eca";
    this.item.command = "eca.open";
    this.subscription = supervisor.onState((state) => {
      if (state.kind !== "running") {
        this.calls.clear();
        this.questions.clear();
        this.running.clear();
      }
      this.changed();
    });
    this.changed();
    this.item.show();
  }

  /** The summaries of the calls that wait for approval. */
  get waiting(): string[] {
    return [...this.calls.values()].map((one) => one.summary);
  }

  fromDaemon(message: Message): void {
    const params = (message.params ?? {}) as { chatId?: string; id?: unknown; status?: string; content?: Content; chat?: { selectModel?: string } };
    switch (message.method) {
      case "chat/contentReceived":
        if (typeof params.chatId === "string" && params.content) this.content(params.chatId, params.content);
        break;
      case "chat/statusChanged":
        if (params.status === "running" || params.status === "stopping") this.running.add(params.chatId ?? "");
        else this.clearChat(params.chatId ?? "");
        break;
      case "chat/deleted":
        this.clearChat(params.chatId ?? "");
        break;
      case "chat/askQuestion":
        this.questions.add(message.id);
        break;
      case "$/cancelRequest":
        this.questions.delete(params.id);
        break;
      case "config/updated":
        if (params.chat?.selectModel) this.model = line(params.chat.selectModel);
        break;
      default:
        return;
    }
    this.changed();
  }

  private clearChat(chat: string): void {
    this.running.delete(chat);
    for (const [key, one] of this.calls) if (one.chat === chat) this.calls.delete(key);
  }

  private content(chat: string, content: Content): void {
    const key = `${chat}/${content.id ?? ""}`;
    switch (content.type) {
      case "toolCallRun":
        if (!content.manualApproval) break;
        this.calls.set(key, { chat, summary: line(content.summary ?? content.name) });
        this.notifyWaiting();
        break;
      case "toolCallRunning":
      case "toolCalled":
      case "toolCallRejected":
        this.calls.delete(key);
        break;
      case "usage":
        this.cost = content.sessionCost === undefined ? this.cost : line(content.sessionCost, 20);
        break;
      case "progress":
        if (content.state === "finished") this.clearChat(chat);
        break;
    }
  }

  fromPage(message: Message): void {
    const params = (message.params ?? {}) as { chatId?: string; toolCallId?: string; model?: string };
    if (message.method === "chat/toolCallApprove" || message.method === "chat/toolCallReject") this.calls.delete(`${params.chatId ?? ""}/${params.toolCallId ?? ""}`);
    else if ((message.method === "chat/prompt" || message.method === "chat/selectedModelChanged") && params.model) this.model = line(params.model);
    else if (message.method === undefined) this.questions.delete(message.id);
    else return;
    this.changed();
  }

  changed(): void {
    const { kind, problem } = this.supervisor.state;
    const waiting = this.calls.size + this.questions.size;
    const model = line(this.model.replace(/^.*\//, ""), 30);
    const icon = waiting > 0 ? "bell-dot" : problem ? "warning" : kind === "starting" || this.running.size > 0 ? "loading~spin" : "comment-discussion";
    const words = waiting > 0 ? `${String(waiting)} waiting` : problem ? "eca" : [model || "eca", this.cost && `$${this.cost.replace(/^\$/, "")}`].filter(Boolean).join(" · ");
    this.item.text = `$(${icon}) ${words}`;
    const state = problem ? `${problem.text} ${problem.remedy}` : kind === "running" ? [`eca ${this.supervisor.program?.version ?? ""}`, this.model, this.cost && `this chat: $${this.cost}`].filter(Boolean).join("\n") : kind === "starting" ? "eca is starting" : "eca starts when you open its chat";
    this.item.tooltip = waiting > 0 ? this.waiting.map((one) => line(one, 120)).join("\n") || "eca has a question" : state;
    this.item.backgroundColor = waiting > 0 || problem ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    this.item.accessibilityInformation = { label: waiting > 0 ? `eca: ${words} for you` : `eca: ${words}`, role: "button" };
    if (waiting === this.reported) return;
    this.reported = waiting;
    this.listeners.fire(waiting);
    void vscode.commands.executeCommand("setContext", "eca.waiting", waiting > 0);
  }

  dispose(): void {
    this.subscription.dispose();
    this.listeners.dispose();
    this.item.dispose();
  }
}
