// Shows changes in VS Code's own diff editor.
import { basename } from "node:path";
import * as vscode from "vscode";
import { sides } from "./patch";
import { line, reason } from "./text";

export const scheme = "eca-diff";
/** So many texts are kept for diffs that are open. */
const kept = 100;

export class Diffs implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(scheme, this);
  private last = 0;

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.query) ?? "This change is no longer kept. Open it again from the chat.";
  }

  /** A document with a text, whose name gives it its language. */
  private document(path: string, text: string): vscode.Uri {
    const id = String(++this.last);
    this.texts.set(id, text);
    for (const old of this.texts.keys()) {
      if (this.texts.size <= kept) break;
      this.texts.delete(old);
    }
    return vscode.Uri.from({ scheme, path: vscode.Uri.file(path).path, query: id });
  }

  async show(path: string, before: string, after: string, title: string): Promise<vscode.Uri> {
    const [left, right] = [this.document(path, before), this.document(path, after)];
    await vscode.commands.executeCommand("vscode.diff", left, right, title, { preview: true });
    return right;
  }

  /** Shows a change of the daemon, proposed or made, or the file if there is no change. */
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
      // The file is another one by now: the change alone is still worth reading.
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
