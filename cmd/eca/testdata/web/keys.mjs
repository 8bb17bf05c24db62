// The chat page in Chromium, used by keys alone: the mouse is never moved, and nothing is focused but by
// keys. The arguments come as JSON; see TestWebKeyboard. What it prints are the steps that went well.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const given = JSON.parse(process.argv[2]);
const require = createRequire(path.join(given.modules, 'x'));
const { chromium } = require('playwright-core');
const browser = await chromium.launch({ executablePath: given.chromium, args: ['--no-sandbox'] });
const context = await browser.newContext({ viewport: { width: 1000, height: 760 }, reducedMotion: 'reduce', permissions: ['clipboard-read', 'clipboard-write'] });
const page = await context.newPage();
page.setDefaultTimeout(given.patience);
await page.goto(given.link);

const keys = page.keyboard;
const log = page.getByRole('log');
const dock = page.locator('.dock');
const stop = page.getByRole('button', { name: 'Stop', exact: true });
const button = (name) => page.getByRole('button', { name, exact: true });
const exists = (name) => fs.existsSync(path.join(given.root, name));
const gone = (locator) => locator.waitFor({ state: 'detached' });
const shown = (text) => log.getByText(text).last().waitFor();
const atRest = async (answer) => { await shown(answer); await gone(stop); };
const isFocused = (locator) => locator.evaluate((el) => el === document.activeElement);
const inPrompt = () => page.waitForFunction(() => document.activeElement?.id === 'prompt');
const say = async (text) => { await inPrompt(); await keys.type(text); await keys.press('Enter'); };

/** What has the focus must be seen to have it. */
async function seen() {
  assert.deepEqual(await page.evaluate(() => {
    const el = document.activeElement;
    if (!el || el === document.body) return 'nothing has the focus';
    if (!el.checkVisibility({ opacityProperty: true })) return 'it is not visible';
    const { top, bottom } = el.getBoundingClientRect();
    if (bottom <= 0 || top >= innerHeight) return 'it is out of the page';
    const around = el.id === 'prompt' ? getComputedStyle(el.closest('.composer')) : undefined;
    const { outlineStyle, outlineWidth } = getComputedStyle(el);
    const marked = around ? around.borderColor !== getComputedStyle(document.querySelector('header')).borderBottomColor : outlineStyle !== 'none' && parseFloat(outlineWidth) > 0;
    return marked ? '' : 'it is not marked';
  }), '');
}

/** Goes to something with Tab, or back to it with Shift+Tab. */
async function reach(locator, key = 'Tab') {
  await locator.waitFor();
  for (let presses = 0; presses < 150; presses++) {
    if (await isFocused(locator)) return seen();
    await keys.press(key);
  }
  throw new Error(`${locator} is not reached with ${key}`);
}
const press = async (locator, key) => { await reach(locator, key); await keys.press('Enter'); };

async function step(name, work) {
  try {
    await work();
    await seen();
  } catch (e) {
    const focus = await page.evaluate(() => document.activeElement?.outerHTML.slice(0, 300)).catch(() => '');
    console.error(`${name}: ${e.stack}\n--- the focus\n${focus}\n--- the page\n${await page.locator('body').innerText().catch(() => '')}`);
    await browser.close();
    process.exit(1);
  }
  console.log(name);
}

await step('a prompt is sent, and its answer read, unfolded and copied', async () => {
  await page.getByText('Welcome to ECA').waitFor();
  await say('hello');
  await atRest('Hello,');
  await press(button('Copy code'), 'Shift+Tab');
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'func main() {}');
  const thought = log.locator('.reason summary');
  await press(thought, 'Shift+Tab');
  await shown('I should greet.');
  await keys.press('Enter');
  await gone(log.getByText('I should greet.'));
  await keys.press('Escape');
  await inPrompt();
});

await step('a turn is stopped, by Escape and by its button', async () => {
  for (const end of [() => keys.press('Escape'), () => press(stop)]) {
    await say('endless');
    await log.getByText('It begins and').last().waitFor();
    await stop.waitFor();
    await end();
    await gone(stop);
    await inPrompt();
  }
});

await step('a running turn is steered, and the words are taken back', async () => {
  await say('slow');
  await shown('tick');
  await say('hurry');
  await press(button('Take back'), 'Shift+Tab');
  await gone(button('Take back'));
  await inPrompt();
  assert.equal(await page.locator('#prompt').inputValue(), 'hurry');
  await keys.press('Enter');
  await button('Take back').waitFor();
});

await step('the chat is renamed while an answer streams, or keeps its name', async () => {
  const title = page.locator('header h1 button');
  for (const end of ['Escape', 'Enter']) {
    await press(title);
    await keys.press('Control+a');
    await keys.type('My chat', { delay: 40 });
    await keys.press(end);
    await inPrompt();
  }
  await title.getByText('My chat').waitFor();
  await stop.waitFor(); // it has streamed all the time
  await keys.press('Escape');
  await gone(stop);
});

await step('a call is approved, by its key and by its button, and its change is folded', async () => {
  await say('write');
  await dock.waitFor();
  await keys.press('Alt+a');
  await atRest('Written.');
  assert.ok(exists('new.txt'));
  await say('edit');
  await press(button('Accept'), 'Shift+Tab');
  await atRest('Edited.');
  await inPrompt();
  const change = log.locator('.call').filter({ hasText: 'old.txt' });
  await change.locator('.diff').waitFor(); // it is small, and so unfolded
  await press(change.locator('summary'), 'Shift+Tab');
  await gone(change.locator('.diff'));
  await keys.press('Enter');
  await reach(change.locator('.diff pre')); // it scrolls
  await keys.press('Escape');
});

await step('a call is rejected, by its key, by its button, and with words', async () => {
  for (const reject of [() => keys.press('Alt+r'), () => press(button('Reject'), 'Shift+Tab')]) {
    await say('refuse');
    await dock.waitFor();
    await reject();
    await gone(dock);
    await gone(stop);
  }
  await say('refuse');
  await dock.waitFor();
  await press(button('Reject with words…'), 'Shift+Tab');
  await keys.press('Escape');
  await inPrompt();
  await keys.press('Alt+w');
  await keys.type('use another name');
  await keys.press('Enter');
  await atRest('Another name it is.');
  assert.equal(exists('refused'), false);
});

await step('a question is answered, by a key, by its button, in other words, and not at all', async () => {
  const own = page.getByLabel('Your own answer');
  for (const [answer, said] of [
    [() => keys.press('Alt+2'), 'You said Green.'],
    [() => press(page.getByRole('button', { name: /Red/ }), 'Shift+Tab'), 'You said Red.'],
    [async () => { await reach(own, 'Shift+Tab'); await keys.type('Blue'); await keys.press('Enter'); }, 'You said Blue.'],
    [() => press(button('No answer'), 'Shift+Tab'), 'You said .'],
  ]) {
    await say('ask');
    await dock.waitFor();
    await answer();
    await gone(dock);
    await atRest(said);
    await inPrompt();
  }
});

await step('another model and another agent are chosen', async () => {
  for (const title of ['Model', 'Agent']) {
    const select = page.getByTitle(title, { exact: true });
    await reach(select);
    const before = await select.inputValue();
    await keys.press('ArrowDown');
    await page.waitForFunction(([title, before]) => document.querySelector(`select[title="${title}"]`).value !== before, [title, before]);
  }
  await keys.press('ArrowUp'); // the agent that may write
  await press(page.getByRole('button', { name: 'Auto-approve' }));
  await page.getByRole('button', { name: 'Auto-approve: on' }).waitFor();
  await keys.press('Enter');
  await gone(page.getByRole('button', { name: 'Auto-approve: on' }));
  await keys.press('Escape');
  await inPrompt();
});

await step('a word is completed', async () => {
  await keys.type('see @old');
  await page.getByRole('option').first().getByText('@old.txt').waitFor();
  await keys.press('Tab');
  assert.equal(await page.locator('#prompt').inputValue(), 'see @old.txt ');
  await keys.press('Control+a');
  await keys.press('Delete');
});

await step('the chat is forked, and a prompt is taken back with its files', async () => {
  const prompts = (text) => log.locator('.user').filter({ hasText: text });
  await press(prompts(/^ask/).last().getByRole('button', { name: 'Roll back' }), 'Shift+Tab');
  await keys.press('Escape');
  await inPrompt();
  const write = prompts(/^write/);
  await press(write.getByRole('button', { name: 'Roll back' }), 'Shift+Tab');
  await keys.press('Enter'); // Messages and files
  await gone(write);
  assert.equal(exists('new.txt'), false);
  await inPrompt();
  await press(prompts(/^endless/).last().getByRole('button', { name: 'Fork' }), 'Shift+Tab');
  await gone(log.getByText('tick'));
  await inPrompt();
});

await step('a job is read and ended, and the servers and keys are shown', async () => {
  await say('background');
  await dock.waitFor();
  await keys.press('Alt+a');
  await atRest('Started.');
  const dialog = page.locator('dialog');
  await press(page.getByRole('button', { name: /^Servers and jobs/ }));
  await dialog.getByText(/\d+ of \d+ tools/).waitFor();
  await press(button('Output'));
  await dialog.getByText('job-output', { exact: true }).waitFor();
  await press(button('End'));
  await dialog.locator('.state.killed').waitFor();
  await gone(button('End'));
  await seen();
  await press(dialog.getByRole('button', { name: /^Log in to Anthropic/i }));
  await dialog.getByRole('button', { name: 'Cancel' }).waitFor();
  await page.waitForFunction(() => document.activeElement?.closest('dialog li'));
  await seen();
  await keys.press('Escape');
  await gone(dialog);
  await keys.press('Escape');
  await keys.press('F1');
  await dialog.getByText('sends the prompt').waitFor();
  await keys.press('Escape');
  await gone(dialog);
  await inPrompt();
});

await step('the chats are listed, one is found and opened, one is deleted', async () => {
  await press(page.getByTitle('New chat (Alt+N)'));
  await inPrompt();
  await say('hello');
  await atRest('Hello,');
  await press(page.getByRole('button', { name: /Chats/ }));
  const find = page.getByPlaceholder('Find a chat');
  await reach(find);
  await keys.type('my chat');
  await press(page.locator('nav .name').filter({ hasText: /^My chat/ }).last());
  await log.getByText('tick').first().waitFor();
  await press(page.locator('nav .current .delete'));
  await seen();
  await keys.press('Enter'); // Delete?
  await page.getByText('Welcome to ECA').waitFor();
  await seen();
  await keys.press('Escape');
  await page.locator('nav').waitFor({ state: 'hidden' });
  await inPrompt();
});
await browser.close();
process.exit(0); // although more links may come
