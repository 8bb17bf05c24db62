// The reference's web client in Chromium with several servers, lines that are cut, and chats that run at
// the same time. See TestReferenceWebClientOverBadLines. What it prints are the steps that went well.
import assert from 'node:assert/strict';

import { assertWords, browser, control, given, step, waitFor } from './common.mjs';

const ports = [given.port, ...given.others];
const context = await browser.newContext({ viewport: { width: 1100, height: 800 } });
// Other programs may listen at the other ports that it looks at.
await context.route((u) => /^77[789]\d$/.test(u.port) && !ports.includes(u.port), (route) => route.abort());
// What streams send arrives later than the answers to requests.
await context.addInitScript(() => {
  const real = globalThis.fetch;
  globalThis.fetch = async (...args) => {
    const response = await real(...args);
    if (!response.url.endsWith('/events')) return response;
    const late = new TransformStream({ transform: (chunk, out) => { setTimeout(() => out.enqueue(chunk), 150); } });
    return new Response(response.body.pipeThrough(late), response);
  };
});
const page = await context.newPage();
page.setDefaultTimeout(given.patience);
const answer = () => page.locator('.assistant-message').last().innerText();
const idle = () => page.locator('.progress-area').waitFor({ state: 'detached' });
const say = async (text) => {
  await page.locator('textarea.field').fill(text);
  await page.locator('textarea.field').press('Enter');
};
const shown = (text) => page.locator('.messages-container').getByText(text).last().waitFor();
const begin = async (text = 'count') => {
  await page.locator('.chat-sidebar-new').click();
  await say(text);
  await shown('w5 ');
};
const whole = async (what, patience) => {
  await waitFor(`the end ${what}`, async () => (await answer()).endsWith('end'), patience);
  await idle();
  assertWords(await answer(), 2500, what);
};

await step('1: all servers of this machine are found', async () => {
  await page.goto(`${given.site}/remote`);
  await page.locator('.connect-protocol-prefix').click(); // http
  await page.locator('#host').fill('eca.localhost');
  await page.locator('#password').fill(given.token);
  await page.locator('.connect-button').click();
  await page.locator('.chat-sidebar').waitFor();
  for (const port of ports) await page.locator(`.conn-tab[title*=":${port}"]`).waitFor();
});

await step('4: another tab and back while a turn runs', async () => {
  await page.locator(`.conn-tab[title*=":${given.port}"]`).click();
  await page.locator('.chat-sidebar-new').waitFor();
  await begin();
  for (let i = 0; i < 3; i++) {
    await page.locator(`.conn-tab[title*=":${given.others[0]}"]`).click();
    await page.waitForTimeout(500);
    await page.locator(`.conn-tab[title*=":${given.port}"]`).click();
    await shown('w5 ');
  }
  await whole('after other tabs');
});

let selections = 0; // while the chat streams
const together = async () => {
  const chats = [];
  for (let i = 0; i < 2; i++) {
    await begin();
    chats.push(await page.locator('.chat-sidebar-item').evaluateAll((items) => items.findIndex((e) => e.classList.contains('active'))));
  }
  const select = (i) => page.locator('.chat-sidebar-item-main').nth(chats[i % 2]).click();
  for (let i = 0; i < 12; i++) {
    await select(i);
    await shown('w5 ');
    if (await page.locator('.progress-area').count()) selections++;
  }
  for (const i of [0, 1]) {
    await select(i);
    await whole(`in chat ${i}`);
  }
};

await step('3: chats that run at the same time', async () => {
  await page.goto(`${given.site}/remote?host=${given.line}&pass=${given.token}&protocol=http`);
  await page.locator('.chat-sidebar-new').waitFor();
  while (selections < (given.soak ? 200 : 20)) await together();
});

for (const cuts of given.soak ? [[40, 360]] : [[1], [10]]) {
  await step(`4: a line that is cut for ${cuts.join(' and ')} s`, async () => {
    await begin(given.soak ? 'slow' : 'count');
    for (const seconds of cuts) {
      await control('cut', { down: true });
      const before = await answer();
      await page.waitForTimeout(seconds * 1000);
      await control('cut', { down: false });
      await waitFor('more of the answer', async () => (await answer()).length > before.length);
    }
    await whole('after the cut', given.soak ? 10 * given.patience : given.patience);
  });
}

await step('23: a page of another origin can call nothing', async () => {
  const foreign = await context.newPage();
  await foreign.goto(`${given.site.replace('localhost', '127.0.0.1')}/remote`);
  const tried = await foreign.evaluate(async ({ host, token }) => {
    const out = {};
    for (const path of ['health', 'session', 'chats', 'events']) {
      for (const headers of [{}, { Authorization: `Bearer ${token}` }]) {
        out[`${path} ${Object.keys(headers)}`] = await fetch(`http://${host}/api/v1/${path}`, { headers }).then((r) => r.status, () => 'failed');
      }
    }
    for (const mode of ['cors', 'no-cors']) {
      for (const path of ['chats/of-another-site/prompt', 'trust']) {
        out[`${mode} ${path}`] = await fetch(`http://${host}/api/v1/${path}`, { method: 'POST', mode, body: '{"message":"from another site","trust":true}' }).then((r) => r.status, () => 'failed');
      }
    }
    return out;
  }, { host: given.host, token: given.token });
  for (const [what, status] of Object.entries(tried)) assert.equal(status, what.startsWith('no-cors') ? 0 : 'failed', what); // 0: opaque
  const chats = await page.evaluate(({ host, token }) => fetch(`http://${host}/api/v1/chats`, { headers: { Authorization: `Bearer ${token}` } }).then((r) => r.text()), { host: given.host, token: given.token });
  assert.ok(!chats.includes('of-another-site'), chats);
});

await browser.close();
