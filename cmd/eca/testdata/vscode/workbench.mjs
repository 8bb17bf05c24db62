// The workbench of VS Code, as code-server serves it to Chromium: started, and used by what its
// user clicks and types.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

export const given = JSON.parse(process.argv[2]);
const require = createRequire(path.join(given.modules, 'x'));
const { chromium } = require('playwright-core');
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
export const problems = []; // what pages and their policies complain about
/** How long a window may take until its extensions and views are there: it starts many programs. */
const startPatience = 90_000;
export const foreign = []; // requests that the chat's frames make to anywhere else

/** Starts the server with the extension installed, as a user installs it, and opens Chromium. */
export async function start(settings) {
  const main = path.join(given.server, 'lib', 'vscode', 'out', 'server-main.js');
  const data = path.join(given.scratch, 'data');
  const common = [main, '--accept-server-license-terms', '--server-data-dir', data, '--user-data-dir', data, '--extensions-dir', path.join(given.scratch, 'extensions')];
  fs.mkdirSync(path.join(data, 'User'), { recursive: true });
  fs.mkdirSync(path.join(data, 'Machine'), { recursive: true });
  const user = { 'workbench.startupEditor': 'none', 'telemetry.telemetryLevel': 'off', 'git.enabled': false, 'editor.acceptSuggestionOnEnter': 'off', 'window.autoDetectColorScheme': true, 'chat.commandCenter.enabled': false };
  fs.writeFileSync(path.join(data, 'User', 'settings.json'), JSON.stringify(user));
  fs.writeFileSync(path.join(data, 'Machine', 'settings.json'), JSON.stringify(settings));
  execFileSync(process.execPath, [...common, '--install-extension', given.vsix], { stdio: 'pipe', timeout: 60_000 });
  const server = spawn(process.execPath, [...common, '--host', '127.0.0.1', '--port', '0', '--without-connection-token'], { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let output = '';
  const port = await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`code-server did not start: ${output}`)), 60_000);
    const read = (chunk) => {
      output = (output + chunk).slice(-20_000);
      const found = /Extension host agent listening on (\d+)/.exec(output);
      if (found) resolve(Number(found[1]));
      if (found) clearTimeout(timer);
    };
    server.stdout.on('data', read);
    server.stderr.on('data', read);
    server.on('exit', () => reject(new Error(`code-server ended: ${output}`)));
  });
  const browser = await chromium.launch({ executablePath: given.chromium, args: ['--no-sandbox'] });
  const close = async () => {
    await browser.close().catch(() => {});
    process.kill(-server.pid, 'SIGTERM'); // it and its extension hosts
  };
  return { browser, origin: `http://127.0.0.1:${port}`, close };
}

/** One window of VS Code. */
export class Window {
  static async open(workbench, folder, size = { width: 1280, height: 820 }) {
    const context = await workbench.browser.newContext({ viewport: size, reducedMotion: 'reduce', colorScheme: 'light' });
    const page = await context.newPage();
    page.setDefaultTimeout(given.patience);
    page.on('console', (m) => { if (/Content Security Policy|TrustedScript|TrustedHTML/.test(m.text()) && !/workbench\.html|frame-src/.test(m.text())) problems.push(m.text()); });
    page.on('request', (r) => { if (r.frame()?.name() === 'pending-frame' && !/^(https:\/\/[^/]*vscode-resource|data:|blob:)/.test(r.url()) && !r.url().startsWith(workbench.origin)) foreign.push(r.url()); });
    await page.goto(folder ? `${workbench.origin}/?folder=${encodeURIComponent(folder)}` : `${workbench.origin}/?ew=true`);
    const window = new Window(page);
    await page.locator('.monaco-workbench').waitFor({ timeout: startPatience });
    if (folder) await page.getByRole('button', { name: /Yes, I trust/ }).click({ timeout: startPatience });
    await window.status.waitFor({ timeout: startPatience }); // the extension is there
    return window;
  }

  constructor(page) {
    this.page = page;
    this.frame = page.frameLocator('iframe.webview.ready').frameLocator('#active-frame');
    this.prompt = this.frame.locator('#prompt');
    this.log = this.frame.getByRole('log');
    this.dock = this.frame.locator('.dock');
    this.stop = this.frame.getByRole('button', { name: 'Stop', exact: true });
    this.status = page.locator('[id="seed-dec29ce4.eca.eca.status"]');
    this.tab = page.locator('.activitybar a[aria-label="eca"]');
  }

  /** Loads the window again; the chat is shown then. */
  async reload() {
    await this.page.reload({ timeout: startPatience });
    await this.prompt.waitFor({ timeout: startPatience });
  }

  button(name) { return this.frame.getByRole('button', { name, exact: true }); }
  async say(text) { await this.prompt.fill(text); await this.prompt.press('Enter'); }
  async shown(text) { await this.log.getByText(text).last().waitFor(); }
  async atRest(answer) { await this.shown(answer); await gone(this.stop); }

  /**
   * Opens VS Code's input with keys, types what is searched for, and chooses a row by its label. A
   * view that is just being loaded loses the keys or takes the focus, and the input closes: whatever
   * comes before the row is chosen is done again then.
   */
  async pick(keys, text, label) {
    const input = this.page.locator('.quick-input-widget input[type="text"]').first();
    const rows = this.page.locator('.quick-input-list .monaco-list-row');
    const wanted = rows.locator('.label-name').getByText(label, { exact: true }).first();
    const focused = rows.and(this.page.locator('.focused')).locator('.label-name');
    const soon = { timeout: 2_000 };
    await until(`${label} is chosen`, async () => {
      try {
        if (!await input.isVisible()) await this.page.keyboard.press(keys);
        await input.fill(text, soon);
        await wanted.waitFor(soon);
        // Its rows move while the list is made: the right one is gone to, not clicked.
        for (let moves = 0; await focused.innerText(soon) !== label; moves++) {
          if (moves === 100) return false;
          await input.press('ArrowDown', soon);
        }
        await input.press('Enter', soon);
        return true;
      } catch (e) {
        if (e.name !== 'TimeoutError') throw e;
        return false;
      }
    });
  }

  /** Runs a command as a user does who knows its name. */
  command(title) { return this.pick('Control+Shift+P', `>${title}`, title); }

  async openFile(name) {
    await this.pick('Control+P', path.join(given.root, name), name); // without ripgrep, only whole paths are found
    await this.page.locator('.tabs-container .tab.active').filter({ hasText: name }).waitFor();
    await this.page.locator(`.editor-instance[aria-label^="${name}"]`).waitFor();
    await this.page.locator('.editor-instance .monaco-editor.focused').waitFor();
  }

  /** Finds a notification in the list of them all: as a toast it hides after some seconds. */
  async notification(text) {
    await this.command('Notifications: Show Notifications');
    const found = this.page.locator('.notifications-center .notification-list-item').filter({ hasText: text }).first();
    await found.waitFor();
    return found;
  }
  async answer(text, button) { await (await this.notification(text)).getByRole('button', { name: button, exact: true }).click(); }
}

export const gone = (locator) => locator.waitFor({ state: 'detached' });

/** Waits until something is so. */
export async function until(what, check) {
  for (const end = Date.now() + given.patience; ; await new Promise((resolve) => setTimeout(resolve, 50))) {
    if (await check()) return;
    if (Date.now() > end) throw new Error(`it did not come about that ${what}`);
  }
}

/** Looks for accessibility in the chat, in the themes that VS Code has for light and dark. */
export async function accessible(window, what) {
  const body = window.frame.locator('body');
  await body.evaluate((_, source) => { if (!globalThis.axe) globalThis.eval(source); }, axe);
  for (const colorScheme of ['dark', 'light']) {
    await window.page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await window.frame.locator(`body.vscode-${colorScheme}`).waitFor();
    const { violations } = await body.evaluate(() => globalThis.axe.run({ rules: { 'heading-order': { enabled: false } } }));
    assert.deepEqual(violations.map((v) => `${what}, ${colorScheme}: ${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`), []);
  }
}

/** Runs steps, each by its name, and says where a day ended that does not go on. */
export function steps(workbench, current) {
  return async (name, work) => {
    const began = Date.now();
    let timer;
    try {
      await Promise.race([work(), new Promise((_, reject) => { timer = setTimeout(() => reject(new Error('the step took longer than two minutes')), 120_000); })]);
    } catch (e) {
      const window = current();
      const text = await window?.frame.locator('body').innerText({ timeout: 2_000 }).catch(() => 'no chat');
      const all = await window?.page.locator('.monaco-workbench').innerText({ timeout: 2_000 }).catch(() => '');
      console.error(`${name}: ${e.stack}\n--- the chat\n${text}\n--- the workbench\n${all?.slice(-3000)}\n--- problems\n${problems.join('\n')}`);
      // What comes late is slow, and what does not come has stalled.
      const since = Date.now();
      const late = await window?.prompt.waitFor({ timeout: 60_000 }).then(() => `there ${Date.now() - since} ms later`, () => 'not there a minute later');
      console.error(`--- the prompt is ${late}`);
      if (given.pictures) await window?.page.screenshot({ path: path.join(given.pictures, 'failed.png') }).catch(() => {});
      await workbench.close();
      process.exit(1);
    } finally {
      clearTimeout(timer);
    }
    console.log(`${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
  };
}

/** The processes of eca that serve a window. */
export function daemons() {
  const out = execFileSync('ps', ['-eo', 'pid,args'], { encoding: 'utf8' });
  return out.split('\n').filter((one) => one.trim().endsWith(`${given.eca} server`)).map((one) => Number.parseInt(one, 10));
}
