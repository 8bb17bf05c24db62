// Rewrites a selection: the change is shown before it is made.
import { randomUUID } from "node:crypto";
import { basename } from "node:path";
import * as vscode from "vscode";
import { scheme, type Diffs } from "./diffs";
import type { Session } from "./session";
import type { Supervisor } from "./supervisor";
import { line, reason } from "./text";

interface Received {
  rewriteId?: string;
  content?: { type?: string; text?: string; message?: string };
}

interface Preview {
  document: vscode.TextDocument;
  range: vscode.Range;
  old: string;
  text: string;
  uri: vscode.Uri; // of the diff's right side
}

/** The answer; if it is one fenced code block, the block's contents. */
export function unfenced(text: string): string {
  return /^\s*```[^\n]*\n([\s\S]*?)\n?```\s*$/.exec(text)?.[1] ?? text;
}

/** The lines that the selection touches, in full. */
function selectedLines({ document, selection: { start, end } }: vscode.TextEditor): vscode.Range {
  const last = end.character === 0 && end.line > start.line ? end.line - 1 : end.line;
  return new vscode.Range(start.line, 0, last, document.lineAt(last).text.length);
}

export class Rewrites implements vscode.Disposable {
  private readonly running = new Map<string, (received: NonNullable<Received["content"]>) => void>();
  private readonly subscriptions: vscode.Disposable[];
  private preview: Preview | undefined;

  constructor(
    private readonly supervisor: Supervisor,
    private readonly diffs: Diffs,
    session: Session,
  ) {
    this.subscriptions = [
      session.onRewrite((params) => {
        const { rewriteId, content } = (params ?? {}) as Received;
        if (content) this.running.get(rewriteId ?? "")?.(content);
      }),
      supervisor.onState((state) => {
        if (state.kind !== "running") for (const one of this.running.values()) one({ type: "error", message: "eca ended" });
      }),
    ];
  }

  async start(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const range = editor && editor.document.uri.scheme !== scheme ? selectedLines(editor) : undefined;
    if (!editor || !range || editor.document.getText(range).trim() === "") {
      void vscode.window.showInformationMessage("eca: select the lines to rewrite in an editor first.");
      return;
    }
    const { document } = editor;
    const prompt = await vscode.window.showInputBox({ title: "Rewrite", prompt: `What should become of lines ${String(range.start.line + 1)} to ${String(range.end.line + 1)}?`, ignoreFocusOut: true });
    if (!prompt?.trim()) return;
    const options = { location: vscode.ProgressLocation.Notification, title: "eca rewrites", cancellable: true };
    try {
      const text = await vscode.window.withProgress(options, (_, token) => this.ask(document, range, prompt, token));
      if (text !== undefined) await this.show(document, range, text);
    } catch (error) {
      void vscode.window.showErrorMessage(`eca: the rewrite failed, and the text is unchanged: ${reason(error)}`);
    }
  }

  private async ask(document: vscode.TextDocument, range: vscode.Range, prompt: string, token: vscode.CancellationToken): Promise<string | undefined> {
    const daemon = await this.supervisor.start();
    const id = randomUUID();
    let text = "";
    try {
      return await new Promise<string | undefined>((resolve, reject) => {
        token.onCancellationRequested(() => resolve(undefined));
        this.running.set(id, (content) => {
          if (content.type === "text") text += content.text ?? "";
          else if (content.type === "replace") text = content.text ?? "";
          else if (content.type === "error") reject(new Error(content.message ?? "the model gave no reason"));
          else if (content.type === "finished") resolve(text);
        });
        const at = (position: vscode.Position): object => ({ line: position.line + 1, character: position.character });
        daemon
          .request("rewrite/prompt", { id, text: document.getText(range), prompt, path: document.uri.fsPath, range: { start: at(range.start), end: at(range.end) } })
          .catch(reject);
      });
    } finally {
      this.running.delete(id);
    }
  }

  private async show(document: vscode.TextDocument, range: vscode.Range, answer: string): Promise<void> {
    const text = unfenced(answer).replace(/\n$/, "");
    if (!text) throw new Error("the model gave no text");
    const before = document.getText();
    const [from, to] = [document.offsetAt(range.start), document.offsetAt(range.end)];
    const name = line(basename(document.fileName), 60);
    const uri = await this.diffs.show(document.fileName, before, before.slice(0, from) + text + before.slice(to), `${name} (rewrite)`);
    const preview: Preview = { document, range, old: document.getText(range), text, uri };
    this.setPreview(preview);
    const apply = "Apply";
    const answered = await vscode.window.showInformationMessage(`Apply this rewrite to ${name}?`, apply, "Discard");
    if (answered !== undefined && this.preview === preview) await (answered === apply ? this.apply() : this.discard());
  }

  private setPreview(preview: Preview | undefined): void {
    this.preview = preview;
    void vscode.commands.executeCommand("setContext", "eca.rewritePreview", preview !== undefined);
  }

  private async closePreview(): Promise<void> {
    const uri = this.preview?.uri.toString();
    this.setPreview(undefined);
    const isIt = (tab: vscode.Tab): boolean => tab.input instanceof vscode.TabInputTextDiff && tab.input.modified.toString() === uri;
    await vscode.window.tabGroups.close(vscode.window.tabGroups.all.flatMap((group) => group.tabs).filter(isIt));
  }

  async apply(): Promise<void> {
    const { preview } = this;
    if (!preview) return;
    await this.closePreview();
    const { document, range, old, text } = preview;
    const edit = new vscode.WorkspaceEdit();
    edit.replace(document.uri, range, text);
    // Apply only if the lines are still those that the model saw.
    if (document.getText(range) === old && (await vscode.workspace.applyEdit(edit))) await vscode.window.showTextDocument(document);
    else void vscode.window.showWarningMessage("eca: the lines have changed since, and the rewrite was not applied. Select them and rewrite again.");
  }

  async discard(): Promise<void> {
    await this.closePreview();
  }

  dispose(): void {
    for (const one of this.subscriptions) one.dispose();
  }
}
