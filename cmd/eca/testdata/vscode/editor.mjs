// Starts the extension eca-vscode, as it is built from its own sources, with the stand-in
// for VS Code beside this file, and the chat that it shows in Chromium. Nothing between the
// page and the server is ours but the way their messages take.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const here = import.meta.dirname;
const forDownloads = ['extract-zip', 'follow-redirects']; // of a server, which the setting names

// start runs the extension of the checkout `extension` against the server `eca` in the
// folders `folders`. What the page does not show in `patience` ms does not come. modules is the folder of the installed packages.
export async function start({ extension, modules, chromium, scratch, eca, folders, patience }) {
  const installed = createRequire(path.join(modules, 'x.js'));
  const bundle = path.join(scratch, 'extension.cjs');
  await installed('esbuild').build({
    entryPoints: [path.join(extension, 'src/extension.ts')],
    bundle: true, format: 'cjs', platform: 'node', mainFields: ['module', 'main'], nodePaths: [modules], outfile: bundle, logLevel: 'error',
    alias: { vscode: path.join(here, 'vscode.cjs'), ...Object.fromEntries(forDownloads.map((name) => [name, path.join(here, 'nothing.cjs')])) },
    external: [path.join(here, 'vscode.cjs')],
  });
  const load = createRequire(import.meta.url);
  const vscode = load('./vscode.cjs');
  vscode.extensionUri = vscode.Uri.file(extension);
  vscode.workspace.workspaceFolders = folders.map((f) => ({ name: path.basename(f), uri: vscode.Uri.file(f) }));
  vscode.test.settings.serverPath = eca;

  const problems = []; // what a person would find in the developer tools or the log
  process.on('unhandledRejection', (e) => problems.push(`the extension: ${e?.stack ?? e}`));

  const { chromium: browserType } = installed('playwright-core');
  const browser = await browserType.launch({
    executablePath: chromium,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
  const page = await (await browser.newContext({ viewport: { width: 520, height: 900 } })).newPage();
  page.setDefaultTimeout(patience);
  page.on('pageerror', (e) => problems.push(`the page: ${e.stack}`));
  page.on('console', (m) => {
    if (m.type() === 'error') problems.push(`the console: ${m.text()}`);
  });

  // The page asks for the files of the webview under one made-up origin.
  const origin = 'https://vscode.invalid'; // secure, as VS Code's is

  let html = '';
  await page.route(origin + '/**', (route) => {
    const { pathname } = new URL(route.request().url());
    if (pathname === '/') return route.fulfill({ contentType: 'text/html', body: html });
    return fs.existsSync(pathname) ? route.fulfill({ path: pathname }) : route.fulfill({ status: 404 });
  });
  const received = new vscode.EventEmitter();
  const sent = []; // messages to the page, for when a test fails
  let last = Promise.resolve();
  const webview = {
    onDidReceiveMessage: received.event,
    asWebviewUri: (u) => origin + u.fsPath,
    cspSource: origin,
    postMessage(message) {
      const text = JSON.stringify(message); // as VS Code does: undefined is dropped
      sent.push(text);
      last = last.then(() => page.evaluate((m) => window.postMessage(JSON.parse(m), '*'), text)).catch(() => {});
    },
    set html(text) { html = text; },
  };
  await page.exposeFunction('toExtension', (m) => received.fire(JSON.parse(m)));
  await page.addInitScript(() => {
    window.acquireVsCodeApi = () => ({ postMessage: (m) => window.toExtension(JSON.stringify(m)) });
  });

  const { activate, deactivate } = load(bundle);
  const context = {
    extensionPath: extension, extensionMode: 1, subscriptions: [],
    logUri: vscode.Uri.file(path.join(scratch, 'log')),
    globalState: { get() {}, async update() {} },
  };
  await activate(context);
  vscode.test.view().resolveWebviewView({ webview, show() {} });
  await page.goto(origin + '/');
  return {
    page, vscode, user: vscode.test.user, problems, sent,
    async stop() { await deactivate(); await browser.close(); },
  };
}
