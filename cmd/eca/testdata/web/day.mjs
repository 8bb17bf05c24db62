// A person's day with the chat page in Chromium: what is typed and clicked, and what must be
// seen then. The arguments come as JSON; see TestWebDay. What it prints are the steps that
// went well.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import readline from 'node:readline';

const given = JSON.parse(process.argv[2]);
const require = createRequire(path.join(given.modules, 'x'));
const { chromium } = require('playwright-core');
const axe = require.resolve('axe-core/axe.min.js');
const browser = await chromium.launch({ executablePath: given.chromium, args: ['--no-sandbox'] });
const links = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator](); // for other pages
const problems = []; // what the page complains about
const foreign = []; // requests to anywhere else
const sockets = []; // connections of the first page

async function open(link, watch) {
  // The policy would keep the accessibility checker out; TestWebPolicy checks the policy.
  const context = await browser.newContext({ viewport: { width: 1000, height: 760 }, reducedMotion: 'reduce', bypassCSP: true });
  const page = await context.newPage();
  page.setDefaultTimeout(given.patience);
  page.on('pageerror', (e) => problems.push(String(e)));
  page.on('request', (r) => { if (!r.url().startsWith(given.origin) && !r.url().startsWith('data:')) foreign.push(r.url()); });
  if (watch) {
    await page.routeWebSocket(/socket/, (ws) => {
      ws.connectToServer();
      sockets.push(ws);
    });
  }
  await page.goto(link);
  return page;
}

const page = await open(given.link, true);
const prompt = page.locator('#prompt');
const log = page.getByRole('log');
const dock = page.locator('.dock');
const stop = page.getByRole('button', { name: 'Stop', exact: true });
const file = (name) => path.join(given.root, name);
const button = (name) => page.getByRole('button', { name, exact: true });

async function step(name, work) {
  try {
    await work();
  } catch (e) {
    console.error(`${name}: ${e.stack}\n--- the page\n${await page.locator('body').innerText().catch(() => '')}\n--- problems\n${problems.join('\n')}`);
    if (given.pictures) await page.screenshot({ path: path.join(given.pictures, 'failed.png') }).catch(() => {});
    await browser.close();
    process.exit(1);
  }
  console.log(name);
}
const picture = async (name) => { if (given.pictures) await page.screenshot({ path: path.join(given.pictures, `${name}.png`) }); };
const say = async (text) => { await prompt.fill(text); await prompt.press('Enter'); };
const shown = (text) => log.getByText(text).last().waitFor();
const atRest = async (answer) => { await shown(answer); await stop.waitFor({ state: 'detached' }); };
const gone = (locator) => locator.waitFor({ state: 'detached' });

async function accessible(what) {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.addScriptTag({ path: axe });
    // Which headings an answer has is up to the model.
    const { violations } = await page.evaluate(() => globalThis.axe.run({ rules: { 'heading-order': { enabled: false } } }));
    assert.deepEqual(violations.map((v) => `${what}, ${colorScheme}: ${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`), []);
  }
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
}

await step('starts, and the link is out of the address', async () => {
  await page.getByText('Welcome to ECA').waitFor();
  assert.equal(new URL(page.url()).hash, '');
  await page.waitForFunction(() => document.activeElement?.id === 'prompt');
  await accessible('the start');
});

await step('an answer with reasoning, as Markdown', async () => {
  await say('hello');
  await atRest('Hello,');
  assert.equal(await log.locator('strong').innerText(), 'world');
  assert.equal(await log.locator('.hljs-keyword').first().innerText(), 'func');
  assert.match(await log.locator('.reason summary').innerText(), /^Thought/);
  await log.locator('.reason summary').click();
  await shown('I should greet.');
});

await step('an edit is shown with its diff, and approved by a key', async () => {
  await say('edit');
  await dock.waitFor();
  assert.match(await dock.innerText(), /old\.txt/);
  assert.equal(await dock.locator('.diff .added').innerText(), '+2nd');
  await accessible('an approval');
  await picture('approval');
  assert.equal(fs.readFileSync(file('old.txt'), 'utf8'), 'first\nsecond\nthird\n');
  await page.keyboard.press('Alt+a');
  await atRest('Edited.');
  await gone(dock);
  assert.equal(fs.readFileSync(file('old.txt'), 'utf8'), 'first\n2nd\nthird\n');
  await picture('chat');
});

await step('what is typed into the prompt approves nothing; a rejection with words', async () => {
  await say('refuse');
  await dock.waitFor();
  await prompt.fill('a');
  await prompt.press('a');
  await prompt.fill('');
  assert.equal(await dock.count(), 1);
  await button('Reject with words…').click();
  await page.keyboard.type('use another name');
  await page.keyboard.press('Enter');
  await atRest('Another name it is.');
  await log.getByText('use another name').waitFor();
  assert.equal(fs.existsSync(file('refused')), false);
});

await step('a call that is remembered asks once', async () => {
  await say('remember');
  await dock.waitFor();
  await page.keyboard.press('Alt+s');
  await atRest('Remembered.');
  assert.equal(fs.readFileSync(file('r2'), 'utf8'), '2');
});

await step('a question', async () => {
  await say('ask');
  await page.getByText('Which colour?').last().waitFor();
  await accessible('a question');
  await page.getByRole('button', { name: /Green/ }).click();
  await atRest('You said Green.');
});

await step('stop, by Escape in an empty prompt', async () => {
  await say('endless');
  await shown('It begins and');
  await prompt.press('Escape');
  await gone(stop);
});

await step('steering', async () => {
  await say('steady');
  await shown('step');
  await say('hurry');
  await page.getByText('eca reads this before its next step').waitFor();
  await log.getByText('hurry').waitFor();
  await gone(page.getByText('eca reads this before its next step'));
  await gone(stop);
});

await step('tasks', async () => {
  await say('tasks');
  await atRest('Planned.');
  await page.getByText('Tasks: 0 of 2 done').waitFor();
});

await step('a subagent, and an approval inside', async () => {
  await say('delegate');
  await page.getByText('A subagent asks:').waitFor();
  await button('Accept').click();
  await atRest('Delegated.');
  assert.equal(fs.readFileSync(file('child.txt'), 'utf8'), 'c');
  await log.locator('.call summary').last().click();
  await shown('The child is done.');
});

await step('a background job', async () => {
  await say('background');
  await dock.waitFor();
  await button('Accept').click();
  await atRest('Started.');
  await page.getByRole('button', { name: /^Servers and jobs/ }).click();
  await button('Output').click();
  await page.getByText('job-output', { exact: true }).waitFor();
  await accessible('the servers');
  await button('End').click();
  await page.locator('.state.killed').waitFor();
  await page.keyboard.press('Escape');
});

await step('completion of contexts, files and commands', async () => {
  const first = page.getByRole('option').first();
  for (const [typed, offered, taken] of [['see @old', '@old.txt', 'see @old.txt '], ['see #old', '#old.txt', 'see #old.txt '], ['/doc', '/doctor', '/doctor ']]) {
    await prompt.fill('');
    await prompt.pressSequentially(typed);
    await first.getByText(offered).waitFor();
    await prompt.press('Tab');
    assert.equal(await prompt.inputValue(), taken);
  }
  await prompt.fill('');
  await prompt.pressSequentially('attach @old');
  await first.getByText('@old.txt').waitFor();
  await prompt.press('Enter');
  await prompt.press('Enter');
  await atRest('There is no answer to that.');
});

await step('errors of the provider are said', async () => {
  await say('unauthorized');
  await log.locator('.notice.bad').last().waitFor();
  assert.match(await log.locator('.notice.bad').last().innerText(), /key|401|log ?in/i);
  await gone(stop);
});

await step('what a model writes does nothing', async () => {
  await say('hostile');
  await atRest('the end of it');
  const answer = log.locator('.assistant').last();
  assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
  assert.equal(await answer.locator('img, script, iframe, style').count(), 0);
  assert.deepEqual(await answer.locator('a').evaluateAll((all) => all.map((a) => a.href)), ['https://good.example/', 'http://127.0.0.1:1/p.png']);
  const text = await answer.innerText();
  for (const part of ['<script>', '(javascript:globalThis.pwned=1)', '(command:run)', '␛[31m', '\\u202e', '(good.example)']) assert.ok(text.includes(part), `${part} in ${text}`);
  assert.deepEqual(foreign, []);
});

await step('reloaded in mid-stream: nothing lost, nothing doubled', async () => {
  await say('slow');
  await shown('tick');
  await page.reload();
  await shown('tick');
  await stop.waitFor();
  await gone(stop);
  const ticks = (await log.locator('.assistant').last().innerText()).match(/tick/g) ?? [];
  assert.equal(ticks.length, 400);
  assert.equal(await log.getByText('hostile', { exact: true }).count(), 1);
});

await step('a lost connection comes back', async () => {
  // How many earlier messages a page has loaded depends on when it was scrolled.
  const messages = async () => (await log.innerText()).replace(/^↑ Earlier messages\s*/, '');
  const before = await messages();
  await sockets.at(-1).close();
  await page.getByText('The connection to eca was lost').waitFor();
  await gone(page.locator('.banner'));
  await button('Send').waitFor();
  await shown('tick');
  const after = await messages();
  const [longer, shorter] = before.length > after.length ? [before, after] : [after, before];
  assert.equal(longer.slice(-shorter.length), shorter);
  assert.ok(shorter.includes('hostile') && shorter.includes('tick'), shorter);
});

await step('two pages on one chat', async () => {
  const other = await open((await links.next()).value, false);
  await other.getByRole('button', { name: /Chats/ }).click();
  await other.locator('nav .name').first().click();
  await other.getByRole('log').getByText('hostile', { exact: true }).waitFor();
  await say('write');
  await dock.waitFor();
  await other.locator('.dock').getByRole('button', { name: 'Accept', exact: true }).click();
  await atRest('Written.');
  await gone(dock);
  await other.getByRole('log').getByText('Written.').waitFor();
  await say('ask');
  await other.getByRole('button', { name: /Red/ }).click();
  await gone(dock);
  await gone(stop);
  await log.getByText('You said', { exact: false }).nth(1).waitFor();
  await other.context().close();
});

await step('rename, fork, rollback with files', async () => {
  await page.locator('header h1 button').click();
  await page.getByLabel('Title of the chat').fill('My chat');
  await page.keyboard.press('Enter');
  await page.locator('header h1').getByText('My chat').waitFor();
  const prompts = log.locator('.user').filter({ hasText: /^write/ });
  await prompts.last().hover();
  await prompts.last().getByRole('button', { name: 'Roll back' }).click();
  assert.equal(fs.existsSync(file('new.txt')), true);
  await button('Messages and files').click();
  await gone(prompts.last());
  assert.equal(fs.existsSync(file('new.txt')), false);
  const hostile = log.locator('.user').filter({ hasText: /^hostile/ });
  await hostile.last().hover();
  await hostile.last().getByRole('button', { name: 'Fork' }).click();
  await gone(log.getByText('tick').first());
});

await step('a long chat is read page by page, and only a part is in the document', async () => {
  await page.keyboard.press('Alt+n');
  await page.getByText('Welcome to ECA').waitFor();
  for (let i = 0; i < 60; i++) {
    await say(`number ${i}`);
    await log.getByText(`number ${i}`, { exact: true }).waitFor();
    await gone(stop);
  }
  await page.reload();
  await shown('number 59');
  assert.equal(await log.getByText('number 0', { exact: true }).count(), 0);
  await log.focus();
  while (await log.getByText('number 0', { exact: true }).count() === 0) {
    await log.evaluate((el) => { el.scrollTop = 0; });
    assert.ok(await log.locator('.item').count() <= 200);
    await page.waitForTimeout(20);
  }
  await page.getByRole('button', { name: '↓ Latest' }).click();
  await shown('number 59');
  assert.ok(await log.locator('.item').count() <= 60);
});

await step('an earlier chat, found by its title', async () => {
  await page.getByRole('button', { name: /Chats/ }).click();
  await page.getByPlaceholder('Find a chat').fill('my chat');
  await accessible('the chats');
  await page.locator('nav .name').first().click();
  await shown('There is no answer to that.');
});

await step('models and agents', async () => {
  await page.getByTitle('Model').selectOption({ index: 1 });
  await page.getByTitle('Agent').selectOption('plan');
  await page.getByRole('button', { name: 'Auto-approve' }).click();
  await page.getByRole('button', { name: 'Auto-approve: on' }).click();
});

await step('narrow, and without a pointer', async () => {
  await page.setViewportSize({ width: 380, height: 640 });
  await page.getByRole('button', { name: /Back to the chat/ }).click();
  await accessible('narrow');
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false);
  await picture('narrow');
});

await step('eca web ends', async () => {
  process.kill(given.pid);
  await page.getByText('start eca web again').waitFor();
});
assert.deepEqual(problems, []);
await browser.close();
process.exit(0); // although more links may come
