// The reference's web client in Chromium: what is typed and clicked, and what must be seen then. See
// TestReferenceWebClient. What it prints are the steps that went well.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { assertWords, browser, control, given, launch, step, waitFor } from './common.mjs';

let page;
const calls = []; // requests to eca
const foreign = [];

/** Opens a page. What it loads of chats arrives late by as many milliseconds, as on a slow machine. */
async function open(url = '', late = 0) {
  const context = await browser.newContext({ viewport: { width: 1100, height: 800 } });
  const opened = await context.newPage();
  opened.setDefaultTimeout(given.patience);
  opened.on('request', (r) => {
    const { host, pathname } = new URL(r.url());
    if (host === given.host) calls.push(`${r.method()} ${pathname}`);
    else if (!r.url().startsWith(given.site) && !r.url().startsWith('data:') && !host.startsWith('eca.localhost')) foreign.push(r.url());
  });
  // Other programs may listen at the other ports that it looks at.
  await context.route((u) => /^(77[789]\d)$/.test(u.port) && u.host !== given.host, (route) => route.abort());
  await context.addInitScript((ms) => {
    const real = globalThis.fetch;
    globalThis.fetch = async (...args) => {
      const response = await real(...args);
      if (ms && /\/chats\/[^/]+$/.test(new URL(response.url).pathname)) await new Promise((done) => { setTimeout(done, ms); });
      return response;
    };
  }, late);
  await opened.goto(`${given.site}/remote${url}`);
  return opened;
}
const link = `?host=${given.host}&pass=${given.token}&protocol=http`;
const answer = (of = page) => of.locator('.assistant-message').last().innerText();
const sidebar = (title, of = page) => of.locator('.chat-sidebar-item-main', { hasText: title });
const idle = (of = page) => of.locator('.progress-area').waitFor({ state: 'detached' });
const field = (of = page) => of.locator('textarea.field');
const say = async (text, of = page) => {
  await field(of).fill(text);
  await field(of).press('Enter');
};
const newChat = (of = page) => of.locator('.chat-sidebar-new').click();
const shown = (text, of = page) => of.locator('.messages-container').getByText(text).last().waitFor();
const ended = async (text, of = page) => { await shown(text, of); await idle(of); };

await step('1: a wrong port and a wrong password are said', async () => {
  page = await open();
  await page.locator('.connect-protocol-prefix').click(); // http
  await page.locator('#host').fill('eca.localhost');
  await page.locator('label[for=auto-discover]').click();
  await page.locator('#password').fill('wrong');
  await page.locator('#port').fill('7776');
  await page.locator('.connect-button').click();
  await page.getByText('Could not reach host').waitFor();
  await page.locator('#port').fill(String(given.port));
  await page.locator('.connect-button').click();
  await page.getByText('Authentication failed').waitFor();
  const before = calls.length;
  await page.waitForTimeout(3000);
  assert.deepEqual(calls.slice(before), [], 'it goes on trying');
  assert.ok(!calls.some((c) => c.endsWith('/events')), 'a stream without a password');
});

await step('1: connects by discovery, and by a link', async () => {
  await page.locator('label[for=auto-discover]').click();
  await page.locator('#password').fill(given.token);
  await page.locator('.connect-button').click();
  await page.locator('.chat-sidebar').waitFor();
  await page.context().close();
  page = await open(link);
  await page.locator('.chat-sidebar').waitFor();
  await field().waitFor();
  assert.equal(new URL(page.url()).search, '');
});

await step('a prompt is answered, and the editor sees it', async () => {
  await say('hello');
  await ended('Hello,');
  await control('saw', { method: 'chat/contentReceived', part: 'Hello' });
});

await step('5: a chat of the editor is listed and does not take the screen', async () => {
  const before = await answer();
  await control('prompt', { chat: 'editors-chat', text: 'hurry' });
  await waitFor('the chat is listed', async () => await page.locator('.chat-sidebar-item').count() >= 2);
  await page.waitForTimeout(1000);
  assert.equal(await answer(), before);
});

await step('2: loads while it streams show each word once', async () => {
  const loads = given.soak ? 200 : 8;
  for (let i = 0; i < loads;) {
    await newChat();
    await say('fast');
    await shown('w5 ');
    for (let more = true; more;) {
      await page.reload();
      await shown('w5 ');
      more = await page.locator('.progress-area').count() > 0 && ++i < loads;
      await page.waitForTimeout(200 * (i % 3));
    }
    await waitFor('the end', async () => (await answer()).endsWith('end'));
    await idle();
    assertWords(await answer(), 5000, `after ${i} loads`);
  }
});

await step('6: what waits for approval is shown after a reload and in a second page, and decided once', async () => {
  await newChat();
  await say('write');
  await page.getByRole('button', { name: 'Accept', exact: true }).waitFor();
  await page.reload();
  await page.getByRole('button', { name: 'Accept', exact: true }).waitFor();
  const second = await open(link);
  await second.getByRole('button', { name: 'Accept', exact: true }).click();
  await ended('Written.');
  await ended('Written.', second);
  await page.getByRole('button', { name: 'Accept', exact: true }).waitFor({ state: 'detached' });
  assert.equal(fs.readFileSync(path.join(given.root, 'new.txt'), 'utf8'), '1');
  await second.context().close();
});

await step('6: an open question is shown after a reload and in a second page, and answered once', async () => {
  await say('ask');
  await page.locator('.chat-question').getByText('Green').waitFor();
  await page.reload();
  await page.locator('.chat-question').getByText('Green').waitFor();
  const second = await open(link, 1500);
  await second.locator('.chat-question__option', { hasText: 'Green' }).click();
  await ended('You said Green.');
  await page.locator('.chat-question').getByText('Green').waitFor({ state: 'detached' });
  await second.context().close();
});

await step('11: accept and remember', async () => {
  await newChat();
  await say('edit');
  await page.getByRole('button', { name: 'Accept and remember' }).click();
  await ended('Edited.');
  assert.equal(fs.readFileSync(path.join(given.root, 'old.txt'), 'utf8'), 'first\n2nd\nthird\n');
  assert.ok(calls.some((c) => c.includes('/approve/')));
});

await step('11: steering', async () => {
  await newChat();
  await say('refuse'); // the turn waits until the call is decided
  const accept = page.getByRole('button', { name: 'Accept', exact: true });
  await accept.waitFor();
  await say('hurry'); // Enter also accepts the call
  await page.locator('.user-message', { hasText: 'hurry' }).waitFor();
  await ended('Hurried.');
  await accept.waitFor({ state: 'detached' });
  assert.ok(calls.some((c) => c.endsWith('/steer')));
});

await step('11: flag, fork, rollback', async () => {
  const first = page.locator('.user-message').first();
  page.once('dialog', (d) => d.accept('here'));
  await first.hover();
  await first.locator('[title="Add flag after this message"]').click();
  await page.locator('.flag-banner', { hasText: 'here' }).waitFor();
  const chats = await page.locator('.chat-sidebar-item').count();
  await page.locator('[title="Fork from here"]').click();
  await waitFor('the fork is listed', async () => await page.locator('.chat-sidebar-item').count() === chats + 1);
  await page.locator('[title="Remove flag"]').first().click();
  await page.locator('.flag-banner').waitFor({ state: 'detached' });
  await newChat();
  await say('hello');
  await ended('Hello,');
  await say('write');
  await page.getByRole('button', { name: 'Accept', exact: true }).click();
  await ended('Written.');
  const last = page.locator('.user-message').last();
  await last.hover();
  await last.locator('[title="Rollback to this message"]').click();
  await page.locator('.user-message', { hasText: 'write' }).waitFor({ state: 'detached' });
  await waitFor('the messages before it are shown again', async () => await page.locator('.user-message').count() === 1);
});

await step('11: rename, clear and delete, which the editor sees', async () => {
  await page.locator('.chat-header .chat.selected').dblclick({ force: true }).catch(() => {});
  const rename = page.locator('.rename-input');
  if (await rename.count()) {
    await rename.fill('Renamed');
    await rename.press('Enter');
    await control('saw', { method: 'chat/contentReceived', part: 'Renamed' });
  }
  const item = page.locator('.chat-sidebar-item.active');
  await item.hover();
  await item.getByLabel('Clear chat messages').click();
  await page.locator('.user-message').first().waitFor({ state: 'detached' });
  await control('saw', { method: 'chat/cleared', part: 'chatId' });
  const chats = await page.locator('.chat-sidebar-item').count();
  await page.locator('.chat-sidebar-item').last().hover();
  await page.locator('.chat-sidebar-item').last().getByLabel('Close chat').click();
  await waitFor('it is gone', async () => await page.locator('.chat-sidebar-item').count() === chats - 1);
  await control('saw', { method: 'chat/deleted', part: 'chatId' });
});

await step('2: a chat with a flag and a subagent that waits is the same after a reload', async () => {
  await newChat();
  await say('hello');
  await ended('Hello,');
  page.once('dialog', (d) => d.accept('before the subagent'));
  await page.locator('.user-message').first().hover();
  await page.locator('[title="Add flag after this message"]').first().click();
  await page.locator('.flag-banner', { hasText: 'before the subagent' }).waitFor();
  await say('delegate');
  const accept = page.getByRole('button', { name: 'Accept', exact: true });
  await accept.waitFor();
  const parts = () => Promise.all(['.user-message', '.assistant-message', '.subagent-card'].map((c) => page.locator(c).allInnerTexts()));
  const before = await parts();
  await page.reload(); // the page does not show flags of a chat that it loads
  await accept.waitFor();
  assert.deepEqual(await parts(), before);
  await accept.click();
  await ended('Delegated.');
  assert.equal(fs.readFileSync(path.join(given.root, 'child.txt'), 'utf8'), 'c');
  await page.reload();
  await shown('Delegated.');
  await page.waitForTimeout(2000); // what is shown twice is by then
  const [prompts, answers] = await parts();
  assert.deepEqual([prompts, answers.length, await page.getByText('general: looking').count()], [['hello', 'delegate'], 2, 1]);
});

await step('11: contexts', async () => {
  await newChat();
  // The page has no list of files, and takes contexts from the window around it.
  await page.evaluate((file) => globalThis.postMessage({ type: 'chat/addContextToSystemPrompt', data: { type: 'file', path: file } }), path.join(given.root, 'old.txt'));
  await page.locator('.added-context', { hasText: 'old.txt' }).waitFor({ state: 'attached' }); // the page hides it
  await say('hello');
  await ended('Hello,');
  await control('asked', { part: 'third' }); // is only in the file
});

await step('11: jobs', async () => {
  await newChat();
  await say('background');
  await page.getByRole('button', { name: 'Accept', exact: true }).click();
  await ended('Started.');
  await control('saw', { method: 'jobs/updated', part: 'running' });
  await page.getByLabel('Open settings').click();
  await page.locator('.settings-tab', { hasText: 'Jobs' }).click();
  await page.locator('.job-card.running [title="View output"]').click();
  await page.locator('.job-output-content', { hasText: 'job-output' }).waitFor();
  await page.locator('.job-card.running [title="Kill job"]').click();
  await page.locator('.job-card.running').waitFor({ state: 'detached' });
  await page.locator('.job-card').waitFor();
  await page.reload();
  await field().waitFor();
});

await step('11: stop', async () => {
  await newChat();
  await say('endless');
  await shown('It begins and');
  await page.locator('.progress-area .stop').click();
  await idle();
  assert.ok(calls.some((c) => c.endsWith('/stop')));
});

await step('14: a page that is served over HTTPS', async () => {
  const { port } = new URL(given.secure);
  const from = async (context) => {
    const opened = await context.newPage();
    opened.setDefaultTimeout(given.patience);
    await opened.goto(`${given.secure}/index.html`);
    assert.ok(await opened.evaluate(() => isSecureContext));
    const statuses = {};
    for (const host of ['eca.localhost', 'localhost', '127.0.0.1']) {
      statuses[host] = await opened.evaluate(({ url, token }) => fetch(url, { headers: { Authorization: `Bearer ${token}` } }).then((r) => r.status, () => 'failed'), { url: `http://${host}:${given.port}/api/v1/session`, token: given.token });
    }
    return { statuses, opened };
  };
  const all = (status) => ({ 'eca.localhost': status, localhost: status, '127.0.0.1': status });
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  const { statuses, opened } = await from(context);
  assert.deepEqual(statuses, all(200), 'from this machine');
  await context.route((u) => /^(77[789]\d)$/.test(u.port) && u.host !== given.host, (route) => route.abort());
  await opened.goto(`${given.secure}/remote${link}`);
  await field(opened).waitFor();
  await newChat(opened);
  await say('hello', opened);
  await ended('Hello,', opened);
  await context.close();
  // Chromium asks the user whether a page from elsewhere may reach this machine.
  const elsewhere = await launch([`--ip-address-space-overrides=127.0.0.1:${port}=public,[::1]:${port}=public`]);
  for (const allowed of [false, true]) {
    const apart = await elsewhere.newContext({ ignoreHTTPSErrors: true });
    if (allowed) await apart.grantPermissions(['local-network-access'], { origin: given.secure });
    assert.deepEqual((await from(apart)).statuses, all(allowed ? 200 : 'failed'), `from elsewhere, allowed: ${allowed}`);
  }
  await elsewhere.close();
});

await step('26: nobody else was asked for anything', async () => { assert.deepEqual(foreign, []); });
await browser.close();
process.exit(0);
