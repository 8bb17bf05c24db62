// The extension's entry point: creates its parts and registers its commands.
import * as vscode from "vscode";
import { Diffs } from "./diffs";
import { watchReports } from "./editor";
import { InlineCompletion } from "./inline";
import { Rewrites } from "./rewrite";
import { Session } from "./session";
import { Supervisor } from "./supervisor";
import { reason } from "./text";
import { ChatView, viewId } from "./view";

let running: Supervisor | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("eca", { log: true });
  const supervisor = new Supervisor(context, log);
  running = supervisor;
  const diffs = new Diffs();
  const version = (context.extension.packageJSON as { version: string }).version;
  const session = new Session(supervisor, log, { open: (path, diff) => diffs.open(path, diff) }, version);
  const view = new ChatView(context.extensionUri, session);
  const rewrites = new Rewrites(supervisor, diffs, session);
  context.subscriptions.push(
    log, supervisor, diffs, session, rewrites, watchReports(),
    vscode.window.registerWebviewViewProvider(viewId, view, { webviewOptions: { retainContextWhenHidden: true } }),
    vscode.languages.registerInlineCompletionItemProvider([{ scheme: "file" }, { scheme: "untitled" }], new InlineCompletion(supervisor, log)),
    vscode.workspace.onDidChangeWorkspaceFolders((event) => supervisor.changeFolders(event)),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("eca.path")) void supervisor.restart();
    }),
  );
  const decide = async (decision: string): Promise<void> => {
    // The user must see what is decided: a hidden view is only shown.
    if (view.visible) session.call("host/decide", { decision });
    else await view.reveal();
  };
  const commands: Record<string, (...args: never[]) => unknown> = {
    "eca.open": async () => { await view.reveal(); session.callLater("host/focus"); },
    "eca.newChat": async () => { await view.reveal(); session.callLater("host/newChat"); },
    "eca.addSelection": () => insert(selectionContext()),
    "eca.addFile": async (uri?: vscode.Uri, uris?: vscode.Uri[]) => insert(await fileContexts(uris ?? (uri ? [uri] : []))),
    "eca.accept": () => decide("accept"),
    "eca.acceptAndRemember": () => decide("remember"),
    "eca.reject": () => decide("reject"),
    "eca.rejectWithWords": () => decide("words"),
    "eca.stop": () => session.call("host/stop"),
    "eca.restart": () => supervisor.restart(),
    "eca.showLog": () => log.show(),
    "eca.rewrite": () => rewrites.start(),
    "eca.applyRewrite": () => rewrites.apply(),
    "eca.discardRewrite": () => rewrites.discard(),
    "eca.complete": () => vscode.commands.executeCommand("editor.action.inlineSuggest.trigger"),
  };
  const insert = async (contexts: Context[]): Promise<void> => {
    if (contexts.length === 0) {
      void vscode.window.showInformationMessage("eca: open a file first, or choose one in the Explorer.");
      return;
    }
    session.callLater("host/insert", { text: "", contexts });
    await view.reveal();
  };
  for (const [name, run] of Object.entries(commands)) {
    context.subscriptions.push(vscode.commands.registerCommand(name, async (...args: never[]) => {
      try {
        await run(...args);
      } catch (error) {
        log.error(`${name}: ${reason(error)}`);
        void vscode.window.showErrorMessage(`eca: ${reason(error)}`);
      }
    }));
  }
}

interface Context {
  type: "file" | "directory";
  path: string;
  linesRange?: { start: number; end: number };
}

/** The selected lines of the active editor; without a selection, its file. */
function selectionContext(): Context[] {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.uri.scheme !== "file") return [];
  const { start, end } = editor.selection;
  const path = editor.document.uri.fsPath;
  if (editor.selection.isEmpty) return [{ type: "file", path }];
  const last = end.character === 0 && end.line > start.line ? end.line : end.line + 1;
  return [{ type: "file", path, linesRange: { start: start.line + 1, end: last } }];
}

async function fileContexts(uris: readonly vscode.Uri[]): Promise<Context[]> {
  const files = uris.filter((uri) => uri.scheme === "file");
  return Promise.all(files.map(async (uri) => {
    const { type } = await vscode.workspace.fs.stat(uri);
    return { type: type & vscode.FileType.Directory ? "directory" : "file", path: uri.fsPath };
  }));
}

/** VS Code waits a moment for this, which gives the daemon time to store its state. */
export async function deactivate(): Promise<void> {
  await running?.stop();
}
