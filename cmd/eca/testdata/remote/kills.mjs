// Two pages that watch a chat while eca is killed at random moments of its turns: our own page and, if
// there is one, the reference's. See TestRemoteKills. What it prints are the steps that went well.
import assert from 'node:assert/strict';

import { assertWords, browser, control, given, step, waitFor } from './common.mjs';

const open = async (url) => {
  const context = await browser.newContext({ viewport: { width: 1100, height: 800 } });
  // Other programs may listen at the other ports that the reference's page looks at.
  await context.route((u) => /^77[789]\d$/.test(u.port) && u.host !== given.host, (route) => route.abort());
  const page = await context.newPage();
  page.setDefaultTimeout(given.patience);
  await page.goto(url);
  return page;
};
const pages = []; // text returns what a page shows of the chat
const watch = (page, log, stop) => pages.push({ text: () => page.locator(log).innerText(), atRest: async () => await page.locator(stop).count() === 0 });
const watchOurs = async () => {
  const page = await open(`http://${given.host}/#token=${given.token}`);
  await page.getByRole('button', { name: /Chats/ }).click();
  await page.locator('#chats li button.name').first().click();
  watch(page, '[role=log]', 'button:text-is("Stop")');
};
const words = (text) => text.match(/w\d+/g) ?? [];

await step('two pages show the chat of the editor', async () => {
  await control('prompt', { chat: 'watched', text: 'hello' });
  await watchOurs();
  if (given.client) {
    const page = await open(`${given.site}/remote?host=${given.host}&pass=${given.token}&protocol=http`);
    await page.locator('.chat-sidebar-item-main').first().click();
    watch(page, '.messages-container', '.progress-area');
  } else {
    await watchOurs();
  }
  for (const page of pages) await waitFor('the first answer', async () => (await page.text()).includes('Hello,'));
});

await step(`${given.kills} times, no word is lost or doubled when eca was killed`, async () => {
  for (let n = 0; n < given.kills; n++) {
    const prompt = `count ${n}:`; // a page may show only the newest messages
    const answer = async (page) => {
      const [, after = ''] = (await page.text()).split(prompt);
      return words(after);
    };
    await control('prompt', { chat: 'watched', text: prompt });
    for (const page of pages) await waitFor(`turn ${n} begins`, async () => (await answer(page)).length > 5);
    await new Promise((done) => { setTimeout(done, Math.random() * 400); });
    const stored = words(await control('kill', { chat: 'watched' })); // shown to the editor, which opens the chat again
    for (const [i, page] of pages.entries()) {
      await waitFor(`page ${i} shows turn ${n} again`, async () => await page.atRest() && (await answer(page)).length >= stored.length);
      assertWords((await answer(page)).join(' '), stored.length, `page ${i}, turn ${n}`);
    }
    assert.ok(stored.length > 5, `${stored.length} words are stored in turn ${n}, fewer than were shown`);
  }
});

await browser.close();
