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
const pages = []; // with the texts of the answers that each shows
const watch = (page, answer, stop) => pages.push({ answers: () => page.locator(answer).allInnerTexts(), atRest: async () => await page.locator(stop).count() === 0 });
const watchOurs = async () => {
  const page = await open(`http://${given.host}/#token=${given.token}`);
  await page.getByRole('button', { name: /Chats/ }).click();
  await page.locator('#chats li button.name').first().click();
  watch(page, 'article.assistant', 'button:text-is("Stop")');
};
const words = (text) => text.match(/w\d+/g) ?? [];

await step('two pages show the chat of the editor', async () => {
  await control('prompt', { chat: 'watched', text: 'hello' });
  await watchOurs();
  if (given.client) {
    const page = await open(`${given.site}/remote?host=${given.host}&pass=${given.token}&protocol=http`);
    await page.locator('.chat-sidebar-item-main').first().click();
    watch(page, '.assistant-message', '.progress-area');
  } else {
    await watchOurs();
  }
  for (const page of pages) await waitFor('the first answer', async () => (await page.answers()).at(-1)?.startsWith('Hello'));
});

await step(`${given.kills} times, no word is lost or doubled when eca was killed`, async () => {
  for (let n = 0; n < given.kills; n++) {
    const before = await Promise.all(pages.map(async (page) => (await page.answers()).length));
    await control('prompt', { chat: 'watched', text: 'count' });
    for (const [i, page] of pages.entries()) {
      await waitFor(`turn ${n} begins`, async () => {
        const answers = (await page.answers()).slice(before[i]);
        return answers.length > 0 && words(answers.at(-1)).length > 5;
      });
    }
    await new Promise((done) => { setTimeout(done, Math.random() * 400); });
    const shown = words(await control('kill', { chat: 'watched' })); // to the editor that opens the chat again
    assert.ok(shown.length > 5, `${shown.length} words are stored in turn ${n}`);
    for (const [i, page] of pages.entries()) {
      await waitFor(`page ${i} shows turn ${n} again`, async () => await page.atRest() && words((await page.answers()).at(-1) ?? '').length >= shown.length);
      const stored = await fetch(`http://127.0.0.1:${given.port}/api/v1/chats/watched`, { headers: { Authorization: `Bearer ${given.token}` } }).then((r) => r.json());
      const inStore = words(JSON.stringify(stored.messages.at(-1)));
      const inStore2 = words(JSON.stringify(stored.messages.at(-2)));
      assertWords((await page.answers()).at(-1), shown.length, `page ${i}, turn ${n}, stored ${inStore.length} ${inStore2.length}, editor ${shown.length}, pages ${await Promise.all(pages.map(async (p) => words((await p.answers()).at(-1)).length))}`);
    }
  }
});

await browser.close();
