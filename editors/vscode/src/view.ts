// The view that shows the chat page, which editors/web builds.
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { Message } from "./frames";
import type { Page, Session } from "./session";

export const viewId = "eca.chat";

export class ChatView implements vscode.WebviewViewProvider, Page {
  private view: vscode.WebviewView | undefined;

  constructor(
    private readonly extension: vscode.Uri,
    private readonly session: Session,
  ) {
    session.status.onWaiting((count) => this.badge(count));
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.view = view;
    const page = vscode.Uri.joinPath(this.extension, "page");
    view.webview.options = { enableScripts: true, enableForms: true, enableCommandUris: false, localResourceRoots: [page] };
    this.session.setPage(this);
    view.webview.onDidReceiveMessage((message: unknown) => {
      if (typeof message === "object" && message !== null && this.view === view) this.session.fromPage(message as Message);
    });
    view.onDidDispose(() => {
      if (this.view !== view) return;
      this.view = undefined;
      this.session.setPage(undefined);
    });
    view.webview.html = html(view.webview, page);
  }

  private badge(count: number): void {
    if (this.view) this.view.badge = { value: count, tooltip: count > 0 ? `${count} waiting for you` : "" };
  }

  post(batch: Message[]): Thenable<boolean> {
    return this.view?.webview.postMessage(batch) ?? Promise.resolve(false);
  }

  get visible(): boolean {
    return this.view?.visible === true;
  }

  async reveal(): Promise<void> {
    await vscode.commands.executeCommand(`${viewId}.focus`);
  }
}

/** The document of the view. It may load only the page's two files. */
function html(webview: vscode.Webview, page: vscode.Uri): string {
  const nonce = randomBytes(18).toString("base64url");
  const file = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(page, name)).toString();
  const policy = `default-src 'none'; script-src 'nonce-${nonce}'; style-src ${webview.cspSource}; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'`;
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta http-equiv="Content-Security-Policy" content="${policy}" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>eca</title>
    <link rel="stylesheet" href="${file("style.css")}" />
    <script type="module" nonce="${nonce}" src="${file("app.js")}"></script>
  </head>
  <body class="vscode-body">
    <div id="app"></div>
  </body>
</html>`;
}
