// Completion at the cursor, as VS Code's inline suggestions.
import * as vscode from "vscode";
import type { Supervisor } from "./supervisor";
import { reason } from "./text";

/** How long the user must pause before automatic completion asks the daemon. */
const pause = 350;
/** Longer documents get no completion: the daemon needs the whole text. */
const maxLength = 1 << 20;

interface Result {
  items?: { text?: string }[] | null;
}

export class InlineCompletion implements vscode.InlineCompletionItemProvider {
  constructor(
    private readonly supervisor: Supervisor,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  async provideInlineCompletionItems(document: vscode.TextDocument, position: vscode.Position, context: vscode.InlineCompletionContext, token: vscode.CancellationToken): Promise<vscode.InlineCompletionItem[]> {
    const invoked = context.triggerKind === vscode.InlineCompletionTriggerKind.Invoke;
    if (!invoked) {
      const wanted = vscode.workspace.getConfiguration("eca", document).get<boolean>("inlineCompletion.automatic", false);
      if (!wanted || this.supervisor.state.kind !== "running") return [];
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
    const cancelled = (): boolean => token.isCancellationRequested;
    const docText = document.getText();
    if (cancelled() || docText.length > maxLength) return [];
    const abort = new AbortController();
    const subscription = token.onCancellationRequested(() => abort.abort());
    try {
      const daemon = await this.supervisor.start();
      const at = { line: position.line + 1, character: position.character + 1 };
      const path = document.uri.scheme === "file" ? document.uri.fsPath : document.fileName;
      const result = await daemon.request<Result | null>("completion/inline", { docText, docVersion: document.version, position: at, path }, abort.signal);
      const range = new vscode.Range(position, position);
      const items = (result?.items ?? []).filter((one) => typeof one.text === "string" && one.text !== "");
      if (invoked && items.length === 0 && !cancelled()) vscode.window.setStatusBarMessage("eca: no completion here", 4_000);
      return items.map((one) => new vscode.InlineCompletionItem(one.text as string, range));
    } catch (error) {
      this.log.warn(`completion: ${reason(error)}`);
      if (invoked && !cancelled()) void vscode.window.showErrorMessage(`eca: no completion: ${reason(error)}`);
      return [];
    } finally {
      subscription.dispose();
    }
  }
}
