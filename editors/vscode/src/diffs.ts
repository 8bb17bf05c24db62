// Shows changes in VS Code's own diff editor.
import { basename } from "node:path";
import * as vscode from "vscode";
import { sides } from "./patch";
import { line, reason } from "./text";

export const scheme = "eca-diff";
/** How many texts are kept for open diffs; the oldest go first. */
const maxTexts = 100;

export class Diffs implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(scheme, this);
  private lastId = 0;

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.query) ?? "This change is no longer kept. Open it again from the chat.";
  }

  /** A virtual document with the text; VS Code takes its language from the path. */
  private document(path: string, text: string): vscode.Uri {
    const id = String(++this.lastId);
    this.texts.set(id, text);
    for (const old of this.texts.keys()) {
      if (this.texts.size <= maxTexts) break;
      this.texts.delete(old);
    }
    return vscode.Uri.from({ scheme, path: vscode.Uri.file(path).path, query: id });
  }

  async show(path: string, before: string, after: string, title: string): Promise<vscode.Uri> {
    const [left, right] = [this.document(path, before), this.document(path, after)];
    await vscode.commands.executeCommand("vscode.diff", left, right, title, { preview: true });
    return right;
  }

  /** Shows a change that the daemon proposed or made; without a diff, the file. */
  async open(path: string, diff: string | undefined): Promise<void> {
    const uri = vscode.Uri.file(path);
    const name = line(basename(path), 60);
    try {
      if (!diff) {
        await vscode.window.showTextDocument(uri, { preview: true });
        return;
      }
      const current = await vscode.workspace.fs.readFile(uri).then((bytes) => Buffer.from(bytes).toString("utf8"), () => "");
      const both = sides(current, diff);
      if (both) {
        await this.show(path, both.before, both.after, `${name} (${both.made ? "changed" : "proposed"} by eca)`);
        return;
      }
      // The diff no longer fits the file: show the changed lines alone.
      await vscode.window.showTextDocument(this.document(`${path}.diff`, diff), { preview: true });
      void vscode.window.showInformationMessage(`${name} has changed since, so only the lines of this change are shown.`);
    } catch (error) {
      void vscode.window.showErrorMessage(`eca: ${name} cannot be shown: ${reason(error)}`);
    }
  }

  dispose(): void {
    this.registration.dispose();
    this.texts.clear();
  }
}
