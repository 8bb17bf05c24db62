// What can go wrong with our extension: a daemon that hangs, dies or sends nonsense, a huge chat, a
// huge workspace, no network. The arguments come as JSON; see TestVSCodeBadInput.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { given, gone, problems, start, steps, until, Window } from './workbench.mjs';

const fake = (kind) => {
  const script = fileURLToPath(new URL('daemon.mjs', import.meta.url));
  const program = path.join(given.scratch, kind);
  fs.writeFileSync(program, `#!/bin/sh\n[ "$1" = --version ] && echo eca 9.9.9 && exit\nexec '${process.execPath}' '${script}' ${kind}\n`, { mode: 0o755 });
  return program;
};
const workbench = await start({ 'eca.path': fake('hangs') });
const w = await Window.open(workbench, given.root);
const step = steps(workbench, () => w);
const banner = w.frame.locator('.banner');
const use = (program) => fs.writeFileSync(path.join(given.scratch, 'data', 'Machine', 'settings.json'), JSON.stringify({ 'eca.path': program }));
const useFake = async (kind) => {
  use(fake(kind));
  await w.frame.getByText(`The daemon ${kind}`).waitFor();
};

await step('a daemon that does not answer', async () => {
  await w.tab.click();
  await banner.getByText('did not answer within 30 s').waitFor({ timeout: 90_000 });
  assert.match(await banner.innerText(), /eca: Show Log/);
});

await step('a daemon that dies each time', async () => {
  use(fake('dies'));
  await banner.getByText('times within two minutes').waitFor();
  assert.match(await banner.innerText(), /ended with code 3[^]*eca: Show Log/);
});

await step('messages that are malformed are reported, and the others are shown', async () => {
  await useFake('malformed');
  await w.say('hello');
  await w.atRest('the end of it');
  await w.notification('eca sent something that cannot be read');
  await w.frame.getByText('which the page cannot use').waitFor();
  await w.say('again');
  await until('the page works', async () => await w.log.getByText('the end of it').count() === 2);
});

await step('an answer of 50 MB', async () => {
  await useFake('huge');
  assert.equal(await w.frame.getByText('cannot be shown').count(), 0); // what one daemon broke is shown again for the next
  await w.say('hello');
  await w.log.getByText('the end of it').waitFor({ timeout: 100_000 });
  await gone(w.stop);
  await w.prompt.fill('typed');
  assert.ok(await w.log.locator('.item').count() < 200);
});

await step('a daemon that hangs in a turn: a restart is offered', async () => {
  await useFake('mute');
  await w.say('hello');
  await w.stop.waitFor();
  await w.page.waitForTimeout(30_000);
  await w.answer('eca does not answer', 'Restart eca');
  await gone(w.stop);
  await w.frame.getByText('The daemon mute').waitFor();
});

for (let dir = 0; dir < 100; dir++) {
  fs.mkdirSync(path.join(given.root, `d${dir}`));
  for (let file = 0; file < 1000; file++) fs.writeFileSync(path.join(given.root, `d${dir}`, `f${dir}x${file}.txt`), '');
}
await step('100,000 files', async () => {
  use(given.eca);
  await w.frame.getByText('Welcome to ECA').waitFor();
  await until('a file is offered', async () => {
    await w.prompt.fill('');
    await w.prompt.pressSequentially('see @f99x999');
    return w.frame.getByRole('option').first().getByText('f99x999.txt').waitFor({ timeout: 5_000 }).then(() => true, () => false);
  });
  await w.prompt.press('Tab');
  assert.match(await w.prompt.inputValue(), /f99x999\.txt/);
  await w.prompt.fill('');
});

await step('no network', async () => {
  await w.say('hello');
  await w.log.locator('.notice.bad').getByText('connection refused').waitFor();
  await gone(w.stop);
});
assert.deepEqual(problems, []);
await workbench.close();
