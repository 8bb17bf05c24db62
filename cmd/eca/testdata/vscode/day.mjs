// A person's day with our extension in VS Code: what is typed and clicked, and what must be seen
// then. The arguments come as JSON; see TestVSCode. What it prints are the steps that went well.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { accessible, daemons, foreign, given, gone, problems, start, steps, until, Window } from './workbench.mjs';

const workbench = await start({ 'eca.path': given.eca });
let w = await Window.open(workbench, given.root);
const step = steps(workbench, () => w);
const file = (name) => path.join(given.root, name);
const text = (name) => fs.readFileSync(file(name), 'utf8');
const picture = async (name) => { if (given.pictures) await w.page.screenshot({ path: path.join(given.pictures, `${name}.png`) }); };
const ticks = async (word) => ((await w.log.locator('.assistant').last().innerText()).match(new RegExp(word, 'g')) ?? []).length;

await step('eca starts without its view, which is opened ten seconds later', async () => {
  await w.command('eca: Restart');
  await until('the status bar names the model', async () => /gpt/.test(await w.status.innerText()));
  await w.page.waitForTimeout(10_000);
  await w.tab.click();
  await w.frame.getByText('Welcome to ECA').waitFor();
  await until('agents and models are there', async () => await w.frame.getByTitle('Agent').locator('option').count() > 1);
  assert.match(await w.frame.getByTitle('Model').inputValue(), /openai/);
  await w.page.keyboard.press('Control+Alt+E');
  await until('the prompt has the focus', async () => await w.prompt.evaluate((prompt) => prompt === document.activeElement && document.hasFocus()));
  await accessible(w, 'the start');
});

await step('an answer with reasoning, as Markdown', async () => {
  await w.say('hello');
  await w.atRest('Hello,');
  assert.equal(await w.log.locator('strong').innerText(), 'world');
  assert.equal(await w.log.locator('.hljs-keyword').first().innerText(), 'func');
  assert.match(await w.log.locator('.reason summary').innerText(), /^Thought/);
});

await step('an edit is shown in the diff editor, and approved by a key', async () => {
  await w.say('edit');
  await w.dock.waitFor();
  await until('the status bar says that it waits', async () => /1 waiting/.test(await w.status.innerText()));
  await w.dock.getByRole('button', { name: 'Open diff' }).click();
  await w.page.locator('.tab').filter({ hasText: 'old.txt (proposed by eca)' }).waitFor();
  const diff = w.page.locator('.monaco-diff-editor');
  await diff.locator('.editor.modified .view-line').filter({ hasText: '2nd' }).waitFor();
  await diff.locator('.editor.original .view-line').filter({ hasText: 'second' }).waitFor();
  await accessible(w, 'an approval');
  await picture('approval');
  assert.equal(text('old.txt'), 'first\nsecond\nthird\n');
  await w.prompt.press('Alt+a');
  await w.atRest('Edited.');
  await gone(w.dock);
  assert.equal(text('old.txt'), 'first\n2nd\nthird\n');
  await until('nothing waits', async () => !/waiting/.test(await w.status.innerText()));
});

await step('a change that was made, in the diff editor', async () => {
  await w.command('View: Close All Editors');
  await w.log.getByRole('button', { name: 'Open diff' }).last().click();
  await w.page.locator('.tab').filter({ hasText: 'old.txt (changed by eca)' }).waitFor();
  await w.page.locator('.editor.modified .view-line').filter({ hasText: '2nd' }).waitFor();
  await w.command('View: Close All Editors');
});

await step('a rejection with words, and an approval, by commands', async () => {
  await w.say('refuse');
  await w.dock.waitFor();
  await w.command('eca: Reject with Words…');
  await w.frame.getByLabel('What it should do instead').fill('use another name');
  await w.frame.getByLabel('What it should do instead').press('Enter');
  await w.atRest('Another name it is.');
  assert.equal(fs.existsSync(file('refused')), false);
  await w.say('write');
  await w.dock.waitFor();
  await w.page.keyboard.press('Control+Alt+y');
  await w.atRest('Written.');
  assert.equal(text('new.txt'), '1');
});

await step('a hidden view: what waits is offered, and a command approves nothing unseen', async () => {
  await w.say('refuse');
  await w.dock.waitFor();
  await w.page.locator('.activitybar a[aria-label^="Explorer"]').click();
  await w.page.keyboard.press('Control+Alt+y'); // shows it, and no more
  await w.dock.waitFor();
  assert.equal(fs.existsSync(file('refused')), false);
  await w.command('eca: Reject');
  await gone(w.dock);
  await gone(w.stop);
  await w.say('steady');
  await w.shown('step');
  await w.page.locator('.activitybar a[aria-label^="Explorer"]').click();
  await until('the chat is hidden', async () => !(await w.prompt.isVisible()));
  await w.tab.click();
  await w.atRest('Steady done.');
  const steady = await w.log.locator('.assistant').evaluateAll((all) => all.at(-2).innerText.match(/step/g).length);
  assert.equal(steady, 100);
});

await step('a question', async () => {
  await w.say('ask');
  await w.frame.getByRole('button', { name: /Green/ }).click();
  await w.atRest('You said Green.');
});

await step('stop, by a command and by Escape', async () => {
  await w.say('endless');
  await w.shown('It begins and');
  await w.command('eca: Stop');
  await gone(w.stop);
  await w.say('endless');
  await w.stop.waitFor();
  await w.prompt.press('Escape');
  await gone(w.stop);
});

await step('steering', async () => {
  await w.say('write');
  await w.dock.waitFor();
  await w.say('hurry');
  await w.frame.getByText('eca reads this before its next step').waitFor();
  await w.button('Accept').click();
  await w.atRest('Hurried.');
  await w.log.getByText('hurry', { exact: true }).waitFor();
});

await step('tasks, a subagent with an approval inside, a background job', async () => {
  await w.say('tasks');
  await w.atRest('Planned.');
  await w.frame.getByText('Tasks: 0 of 2 done').waitFor();
  await w.say('delegate');
  await w.frame.getByText('A subagent asks:').waitFor();
  await w.button('Accept').click();
  await w.atRest('Delegated.');
  assert.equal(text('child.txt'), 'c');
  await w.say('background');
  await w.dock.waitFor();
  await w.button('Accept').click();
  await w.atRest('Started.');
  await w.frame.getByRole('button', { name: /^Servers and jobs/ }).click();
  await w.button('Output').click();
  await w.frame.getByText('job-output', { exact: true }).waitFor();
  await w.button('End').click();
  await w.frame.locator('.state.killed').waitFor();
  await w.frame.locator('dialog').press('Escape');
  await gone(w.frame.locator('dialog'));
});

await step('a tool of an MCP server, which is stopped and started', async () => {
  await w.say('consult');
  await w.dock.getByText('sh').first().waitFor();
  await w.button('Accept').click();
  await w.atRest('Consulted: from afar.');
  await w.frame.getByRole('button', { name: /^Servers and jobs/ }).click();
  const row = (name) => w.frame.locator('dialog li').filter({ hasText: new RegExp(`^${name}`) });
  assert.match(await row('ECA').innerText(), /running\s+\d+ of \d+ tools/);
  await row('sh').getByText('1 of 1 tools').waitFor();
  await w.button('Stop: sh').click();
  await row('sh').getByText('stopped').waitFor();
  await w.button('Start: sh').click();
  await row('sh').getByText('running').waitFor();
  await w.frame.locator('dialog').press('Escape');
  await gone(w.frame.locator('dialog'));
});

await step('completion of contexts, files and commands', async () => {
  const first = w.frame.getByRole('option').first();
  for (const [typed, offered, taken] of [['see @old', '@old.txt', 'see @old.txt '], ['see #old', '#old.txt', 'see #old.txt '], ['/doc', '/doctor', '/doctor ']]) {
    await w.prompt.fill('');
    await w.prompt.pressSequentially(typed);
    await first.getByText(offered).waitFor();
    await w.prompt.press('Tab');
    assert.equal(await w.prompt.inputValue(), taken);
  }
  await w.prompt.fill('');
});

await step('the selection goes to the chat', async () => {
  await w.openFile('old.txt');
  await w.page.keyboard.press('Control+Home');
  await w.page.keyboard.press('Shift+ArrowDown');
  await w.page.keyboard.press('Control+Alt+a');
  await w.frame.locator('.chips').getByText('old.txt').waitFor();
  await w.say('about these lines');
  await w.atRest('Seen.');
});

await step('diagnostics, definitions and references of the editor', async () => {
  await w.openFile('bad.json');
  await w.page.locator('.squiggly-error').first().waitFor();
  for (const [prompt, answer] of [['diagnose', 'Diagnosed: error.'], ['define', 'Defined: a.css:1.'], ['refer', 'Referred: a.css:2.']]) {
    await w.say(prompt);
    await w.atRest(answer);
  }
});

await step('completion at the cursor', async () => {
  await w.openFile('part.txt');
  await w.page.keyboard.press('Control+Home');
  await w.page.keyboard.press('End');
  await w.command('eca: Complete at the Cursor');
  await w.page.locator('.ghost-text, .ghost-text-decoration').first().waitFor();
  await w.page.keyboard.press('Tab');
  await w.page.keyboard.press('Control+s');
  await until('the completion is in the file', () => text('part.txt') === 'unfinished completed\n');
});

await step('a rewrite, seen before it is made', async () => {
  await w.openFile('old.txt');
  await w.page.keyboard.press('Control+Home');
  await w.page.keyboard.press('ArrowDown');
  await w.page.keyboard.press('ArrowDown');
  await w.page.keyboard.press('Shift+End');
  await w.page.keyboard.press('Control+Alt+r');
  await w.page.locator('.quick-input-widget input').first().waitFor();
  await w.page.keyboard.type('in capitals');
  await w.page.keyboard.press('Enter');
  await w.page.locator('.tab').filter({ hasText: 'old.txt (rewrite)' }).waitFor();
  await w.page.locator('.editor.modified .view-line').filter({ hasText: 'THIRD' }).waitFor();
  assert.equal(text('old.txt'), 'first\n2nd\nthird\n');
  await picture('rewrite');
  await w.answer('Apply this rewrite', 'Apply');
  await gone(w.page.locator('.tab').filter({ hasText: '(rewrite)' }));
  await w.page.locator('.view-line').filter({ hasText: 'THIRD' }).waitFor();
  await w.page.keyboard.press('Control+s');
  await until('the rewrite is in the file', () => text('old.txt') === 'first\n2nd\nTHIRD\n');
});

await step('models, agents, auto-approval', async () => {
  const [model, agent] = [w.frame.getByTitle('Model'), w.frame.getByTitle('Agent')];
  const other = await model.locator('option').nth(1).innerText();
  await model.selectOption({ index: 1 });
  await w.say('hello');
  await w.atRest('Hello,');
  await until('the status bar names the other model', async () => (await w.status.innerText()).includes(other.split('/').at(-1)));
  fs.rmSync(file('new.txt'));
  await agent.selectOption('plan'); // which may not write
  await w.say('write');
  await w.atRest('Written.');
  assert.equal(fs.existsSync(file('new.txt')), false);
  await agent.selectOption('code');
  await w.button('Auto-approve').click();
  await w.say('write');
  await until('the file is written without a question', () => fs.existsSync(file('new.txt')));
  await gone(w.stop);
  await w.button('Auto-approve: on').click();
  await model.selectOption({ index: 0 });
});

await step('errors of the provider are said', async () => {
  await w.say('unauthorized');
  await w.log.locator('.notice.bad').getByText('bad key').waitFor();
  await gone(w.stop);
  for (const prompt of ['limited', 'broken']) {
    await w.say(prompt);
    await w.log.locator('.working').getByText(prompt === 'limited' ? /attempt \d/ : /out of order/).waitFor();
    await w.command('eca: Stop');
    await gone(w.stop);
  }
});

await step('what a model writes does nothing', async () => {
  await w.say('hostile');
  await w.atRest('the end of it');
  const answer = w.log.locator('.assistant').last();
  assert.equal(await w.log.evaluate(() => globalThis.pwned), undefined);
  assert.equal(await answer.locator('img, script, iframe, style').count(), 0);
  assert.deepEqual(await answer.locator('a').evaluateAll((all) => all.map((a) => a.href)), ['http://127.0.0.1:1/p.png']);
  assert.deepEqual(foreign, []);
});

await step('rename, fork, rollback with files', async () => {
  await w.frame.locator('header h1 button').click();
  await w.frame.getByLabel('Title of the chat').fill('My chat');
  await w.frame.getByLabel('Title of the chat').press('Enter');
  await w.frame.locator('header h1').getByText('My chat').waitFor();
  fs.rmSync(file('new.txt'));
  await w.say('write');
  await w.dock.waitFor();
  await w.button('Accept').click();
  await gone(w.dock);
  await gone(w.stop);
  assert.equal(text('new.txt'), '1');
  const prompts = (word) => w.log.locator('.user').filter({ hasText: new RegExp(`^${word}`) });
  const before = await prompts('write').count();
  await prompts('write').last().hover();
  await prompts('write').last().getByRole('button', { name: 'Roll back' }).click();
  await w.button('Messages and files').click();
  await until('the prompt is taken back', async () => await prompts('write').count() < before);
  assert.equal(fs.existsSync(file('new.txt')), false);
  await prompts('hostile').last().hover();
  await prompts('hostile').last().getByRole('button', { name: 'Fork' }).click();
  await gone(w.log.getByText('the end of it').first());
});

await step('the page is loaded again in mid-stream: nothing lost, nothing doubled', async () => {
  const reload = async () => {
    await w.log.evaluate((el) => { el.dataset.old = 'yes'; });
    await w.command('Developer: Reload Webviews');
    await until('there is another page', async () => await w.frame.locator('[role="log"]:not([data-old])').count() === 1);
    await w.shown('tick');
  };
  await w.say('slow');
  await w.shown('tick');
  await reload();
  const seen = await ticks('tick');
  await until('the answer goes on', async () => await ticks('tick') > seen);
  await w.stop.click();
  await gone(w.stop);
  const whole = await ticks('tick');
  await reload(); // what is stored is what was seen
  assert.equal(await ticks('tick'), whole);
  assert.equal(await w.log.getByText('slow', { exact: true }).count(), 1);
});

await step('the window is loaded again in mid-stream', async () => {
  // In a browser, VS Code writes the state of its views (here, which chat is open) every five seconds
  // and while it is idle, but not when the page is left.
  await new Promise((done) => { setTimeout(done, 8000); });
  await w.say('long');
  await w.shown('tock');
  await w.reload();
  await w.shown('tock');
  assert.equal(await w.log.getByText('long', { exact: true }).count(), 1);
  assert.equal(await w.log.getByText('slow', { exact: true }).count(), 1);
  await gone(w.stop);
  await w.say('hello');
  await w.atRest('Hello,');
});

await step('the daemon is killed in mid-stream, and started again', async () => {
  await w.say('long');
  await w.shown('tock');
  await until('one daemon runs', () => daemons().length === 1);
  const [pid] = daemons();
  process.kill(pid, 'SIGKILL');
  await w.notification('was killed (SIGKILL)');
  await gone(w.frame.locator('.banner'));
  await gone(w.stop);
  await w.shown('tock');
  for (const setting of ['Model', 'Agent']) assert.notEqual(await w.frame.getByTitle(setting).inputValue(), '', setting);
  assert.notDeepEqual(daemons(), [pid]);
  await w.say('hello');
  await w.atRest('Hello,');
});

await step('keys typed while a thousand words a second stream', async () => {
  await w.say('flood');
  await w.shown('word');
  await w.prompt.evaluate((prompt) => {
    globalThis.painted = [];
    prompt.addEventListener('keydown', (key) => requestAnimationFrame(() => setTimeout(() => globalThis.painted.push(performance.now() - key.timeStamp))));
  });
  for (let i = 0; i < 100; i++) await w.prompt.press('x');
  await until('all keys arrived', async () => await w.prompt.inputValue() === 'x'.repeat(100));
  const painted = (await w.prompt.evaluate(() => globalThis.painted)).sort((a, b) => a - b);
  console.log(`a key was on the screen after ${painted[50].toFixed(1)} ms, 95 of 100 after ${painted[94].toFixed(1)} ms`);
  await w.prompt.fill('');
  await gone(w.stop);
  const words = await w.log.locator('.assistant').evaluateAll((all) => all.slice(-2).map((one) => one.innerText).join(' ').match(/word/g).length);
  assert.ok(words >= 10_000, `${words} words`);
});

if (given.pictures) {
  await step('pictures, at three widths, dark and light', async () => {
    await w.command('View: Close All Editors');
    await w.command('eca: New Chat');
    await w.frame.getByText('Welcome to ECA').waitFor();
    await w.say('Rename the function parse in main.go to parseLine.');
    await w.dock.getByRole('button', { name: 'Open diff' }).click();
    await w.page.locator('.editor.modified .view-line').filter({ hasText: 'parseLine' }).waitFor();
    const edge = async () => { const box = await w.page.locator('.part.sidebar').boundingBox(); return box.x + box.width; };
    for (const [name, to] of [['narrow', 270], ['middle', 400], ['wide', 720]]) {
      await w.page.mouse.move(await edge(), 500);
      await w.page.mouse.down();
      await w.page.mouse.move(to, 500, { steps: 5 });
      await w.page.mouse.up();
      for (const colorScheme of ['dark', 'light']) {
        await w.page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        await w.page.waitForTimeout(1_500);
        await picture(`${name}-${colorScheme}`);
      }
    }
    await w.prompt.press('Alt+r');
    await gone(w.stop);
  });
}

await step('two windows on one folder', async () => {
  const first = w;
  w = await Window.open(workbench, given.root);
  await w.tab.click();
  await w.frame.getByText('Welcome to ECA').waitFor();
  await w.say('hello');
  await w.atRest('Hello,');
  await w.frame.getByRole('button', { name: '☰' }).click();
  await w.frame.getByPlaceholder('Find a chat').fill('my chat');
  await w.frame.locator('nav .name').first().click(); // the other window's
  await w.log.locator('.user').filter({ hasText: /^flood/ }).waitFor();
  await w.say('hello');
  await w.shown('Hello,');
  await w.page.context().close();
  w = first;
  await w.say('hello');
  await w.atRest('Hello,');
});

await step('the window is closed, and eca with it', async () => {
  await w.page.context().close();
  await until('no daemon runs', () => daemons().length === 0);
});

await step('opened again, an earlier chat has everything', async () => {
  w = await Window.open(workbench, given.root);
  await w.tab.click();
  await w.frame.getByRole('button', { name: '☰' }).click();
  await w.frame.getByPlaceholder('Find a chat').fill('my chat');
  await w.frame.locator('nav .name').first().click();
  await w.log.locator('.user').filter({ hasText: /^flood/ }).waitFor();
  assert.equal(await ticks('Hello'), 1);
  await w.say('hello');
  await w.atRest('Hello,');
});
assert.deepEqual(problems, []);
await workbench.close();
