// A person's day in VS Code: what is typed and clicked, and what must be seen then. The
// arguments come as JSON; see TestVSCode. What it prints are the steps that went well.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { start } from './editor.mjs';

const given = JSON.parse(process.argv[2]);
const editor = await start(given);
const { page, vscode, user } = editor;
const field = page.locator('.prompt-area textarea');
const messages = page.locator('.messages-container');
const stop = page.locator('.prompt-area .stop');
const file = (name) => path.join(given.folders[0], name);

// A step that does not end says where it stands, instead of holding up the test.
function limited(work) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error('the step takes too long')), 2 * given.patience); });
  return Promise.race([work(), late]).finally(() => clearTimeout(timer));
}

async function step(name, work) {
  try {
    await limited(work);
  } catch (e) {
    console.error(`${name}: ${e.stack}\n--- the chat\n${await messages.innerText().catch(() => '')}\n--- sent to it\n${editor.sent.slice(-20).join('\n')}\n--- the log\n${user.log}`);
    process.exit(1);
  }
  console.log(name);
}
const say = async (text) => { await field.fill(text); await field.press('Enter'); };
const shown = (text, nth = 0) => messages.getByText(text).nth(nth).waitFor();
const atRest = async (answer) => { await shown(answer); await stop.waitFor({ state: 'detached' }); };
const click = (selector) => page.locator(selector).first().click();
const children = () => fs.readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ').filter((pid) => {
  try { return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith(`${given.eca}\0server`); } catch { return false; }
});

await step('starts', async () => {
  await page.locator('.prompt-area .toolbar').waitFor();
  await page.getByText('Welcome to ECA').first().waitFor();
  assert.equal(user.status.text, '$(circle-filled) ECA');
});

await step('the view is opened again', async () => {
  const chosen = () => page.locator('.prompt-area').innerText();
  const before = await chosen();
  await page.reload();
  await page.getByText('Welcome to ECA').first().waitFor();
  await page.locator('.prompt-area .toolbar').waitFor();
  while (await chosen() !== before) await page.waitForTimeout(50);
});

await step('an answer with reasoning, as Markdown', async () => {
  await say('hello');
  await atRest('world');
  assert.equal(await messages.locator('strong').innerText(), 'world');
  assert.match(await page.locator('.reason-card-header').innerText(), /^Thought\s+\d+\.\ds$/);
});

await step('a new file, with its diff, approved', async () => {
  await say('write');
  await page.locator('.approve-btn').waitFor();
  assert.equal(await page.locator('.file-change-lines-added').innerText(), '+2');
  assert.ok(!fs.existsSync(file('new.txt')));
  await click('.approve-btn');
  await atRest('Written.');
  assert.equal(fs.readFileSync(file('new.txt'), 'utf8'), 'one\ntwo\n');
});

await step('a command rejected', async () => {
  await say('reject');
  await page.locator('.reject-btn').click();
  await atRest('Tell ECA what to do differently');
  assert.ok(!fs.existsSync(file('rejected')));
});

await step('a command that runs, and the user says more meanwhile', async () => {
  execFileSync('mkfifo', [file('go')]);
  await say('work');
  assert.match(await page.locator('.approval-remember-keys').first().textContent(), /touch/);
  await click('.approve-btn');
  while (!fs.existsSync(file('began'))) await page.waitForTimeout(50);
  await say('and this');
  await page.locator('.steer-indicator').waitFor();
  fs.writeFileSync(file('go'), '');
  await atRest('That too.');
  assert.equal(await page.locator('.steer-indicator').count(), 0);
});

await step('stopped in the middle', async () => {
  await say('endless');
  await shown('It begins');
  await stop.click();
  await atRest('Prompt stopped');
});

await step('a question', async () => {
  await say('ask');
  await page.locator('.chat-question').getByText('Blue').click();
  await atRest('answered: Blue');
});

await step('a list of tasks', async () => {
  await say('tasks');
  await atRest('Planned.');
  assert.match(await page.locator('.chat-task-header').innerText(), /First[^]*\(0\/2\)/);
});

await step('a subagent, whose command is approved', async () => {
  await say('delegate');
  await page.locator('.subagent-card .approve-btn').first().click();
  await atRest('It said');
  assert.match(await page.locator('.subagent-card').innerText(), /looking around[^]*steps/);
});

await step('a command of eca, as Markdown', async () => {
  await say('/costs ');
  await messages.locator('.assistant-message table').waitFor();
  await stop.waitFor({ state: 'detached' });
});

await step('completion of commands and contexts', async () => {
  await field.pressSequentially('/comp');
  await page.locator('.commands .label', { hasText: 'compact' }).waitFor();
  await field.press('Escape');
  await field.fill('');
  await click('button.add');
  await page.locator('.context-item', { hasText: 'repoMap' }).waitFor();
  await page.keyboard.press('Escape');
});

await step('a job in the background, killed', async () => {
  await say('job');
  await click('.approve-btn');
  await atRest('In the background.');
  await click('.codicon-settings-gear');
  await page.getByText('Providers').first().click();
  await page.locator('.provider-card', { hasText: 'Authenticated' }).first().waitFor();
  await page.getByText('Jobs').first().click();
  await click('.job-card .kill-btn');
  await page.locator('.job-card .kill-btn').waitFor({ state: 'detached' });
  assert.equal(await page.locator('.job-exit-code').count(), 0);
  await page.getByText('MCPs').first().click();
  await page.locator('.server-card', { hasText: 'ECA' }).first().waitFor();
  assert.equal(await page.getByText('No MCP servers configured yet').count(), 0);
  await click('.codicon-arrow-left');
});

await step('a rewrite in the editor', async () => {
  const open = vscode.test.open(file('new.txt'), [0, 0], [1, 3]);
  user.answers.push('in capitals');
  await vscode.test.run('eca.rewrite');
  while (!vscode.test.lenses(open.document).some((l) => l.command.title === 'Accept')) await page.waitForTimeout(50);
  assert.equal(open.document.text, 'ONE\nTWO\n');
});

await step('nothing was complained about', async () => assert.deepEqual(editor.problems, []));

await step('the server dies in the middle of a turn, and is started again', async () => {
  await say('endless again');
  await shown('It begins', 1);
  for (const pid of children()) process.kill(+pid, 'SIGKILL');
  await page.getByText('ECA server failed to start').waitFor();
  await vscode.test.run('eca.start');
  await page.locator('.prompt-area .toolbar').waitFor();
  await stop.click();
  await stop.waitFor({ state: 'detached' });
  await say('hello again');
  await shown('world', 1);
  await stop.waitFor({ state: 'detached' });
});

await step('an earlier chat is resumed', async () => {
  await vscode.test.run('eca.restart');
  await page.locator('.resume-hint').click();
  await page.locator('.resume-picker-row').first().click();
  await shown('world', 1);
  assert.match(await messages.innerText(), /Written\./);
});

// What the extension says to a server that has died is its own affair.
await step('nor was in the chat', async () => assert.deepEqual(editor.problems.filter((p) => !p.startsWith('the extension')), []));
await editor.stop();
process.exit(0);
