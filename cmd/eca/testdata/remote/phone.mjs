// Our own page on a phone that was paired: what is tapped, and what must be seen then. See
// TestRemotePhone. What it prints are the steps that went well.
import assert from 'node:assert/strict';
import path from 'node:path';

import { assertWords, browser, control, given, step, waitFor } from './common.mjs';

const link = `http://${given.host}/#token=${given.token}`;
const phone = await browser.newContext({ viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true, reducedMotion: 'reduce' });
const page = await phone.newPage();
const foreign = []; // requests to anywhere else
page.on('request', (r) => { if (new URL(r.url()).host !== given.host && !r.url().startsWith('data:')) foreign.push(r.url()); });
page.setDefaultTimeout(given.patience);
const picture = async (name, of = page) => { if (given.pictures) await of.screenshot({ path: path.join(given.pictures, `${name}.png`), scale: 'css' }); };
const prompt = page.locator('#prompt');
const log = page.getByRole('log');
const dock = page.locator('.dock');
const stop = page.getByRole('button', { name: 'Stop', exact: true });
const tap = (name) => page.getByRole('button', { name, exact: true }).tap();
const say = async (text) => { await prompt.tap(); await prompt.fill(text); await page.getByRole('button', { name: 'Send' }).tap(); };
const atRest = async (text) => { await log.getByText(text).last().waitFor(); await stop.waitFor({ state: 'detached' }); };
const fits = async () => assert.deepEqual(await page.evaluate(() => [document.documentElement.scrollWidth <= innerWidth, document.documentElement.scrollHeight <= innerHeight]), [true, true], 'the page is larger than the screen');

await step('13: connects by the link of the QR code', async () => {
  await page.goto(link);
  await prompt.waitFor();
  assert.equal(new URL(page.url()).hash, '');
  await fits();
});

await step('13: a prompt is answered, and the editor sees it', async () => {
  await say('hello');
  await atRest('Hello,');
  await control('saw', { method: 'chat/contentReceived', part: 'Hello' });
  await fits();
  await picture('phone-chat');
});

await step('13: a long command can be read to its end, and is approved', async () => {
  await say('long command');
  await dock.waitFor();
  await fits();
  await picture('phone-approval');
  // Its beginning is on the screen without a tap, and its end after scrolling.
  const command = dock.locator('.command');
  assert.ok((await command.innerText()).endsWith('the-end-of-the-command'));
  const seen = (end) => command.evaluate((e, atEnd) => {
    const box = e.getBoundingClientRect();
    return box.left >= 0 && box.right <= innerWidth && document.elementFromPoint(box.left + 40, atEnd ? box.bottom - 20 : box.top + 20) === e;
  }, end);
  assert.ok(await seen(false), 'the beginning of the command is not seen');
  await dock.locator('.effects li').first().scrollIntoViewIfNeeded();
  assert.ok(await seen(true), 'the end of the command is not seen');
  await tap('Accept');
  await atRest('Long done.');
});

await step('13: an edit is shown with its diff, and rejected', async () => {
  await say('edit');
  await dock.waitFor();
  await fits();
  await picture('phone-edit');
  await tap('Reject');
  await dock.waitFor({ state: 'detached' });
});

await step('13: a question is answered', async () => {
  await say('ask');
  await dock.getByText('Which colour?').waitFor();
  await picture('phone-question');
  await dock.getByRole('button', { name: /Green/ }).tap();
  await atRest('You said Green.');
});

await step('13: a turn is stopped', async () => {
  await say('endless');
  await log.getByText('It begins and').waitFor();
  await stop.tap();
  await stop.waitFor({ state: 'detached' });
});

await step('13: after some time in the background it goes on without loss', async () => {
  await say('count');
  await log.getByText('w5 ').last().waitFor();
  const session = await phone.newCDPSession(page);
  await session.send('Page.setWebLifecycleState', { state: 'frozen' });
  await new Promise((done) => { setTimeout(done, 4000); });
  await session.send('Page.setWebLifecycleState', { state: 'active' });
  await stop.waitFor({ state: 'detached' });
  const answer = log.locator('.item').last();
  await waitFor('the end', async () => (await answer.innerText()).includes('end'));
  assertWords(await answer.innerText(), 2500, 'after the background');
});

await step('the same chat at a desk', async () => {
  const desk = await browser.newContext({ viewport: { width: 1100, height: 760 }, reducedMotion: 'reduce', colorScheme: 'dark' });
  const wide = await desk.newPage();
  wide.setDefaultTimeout(given.patience);
  await wide.goto(link);
  await wide.locator('#prompt').waitFor();
  await wide.locator('#prompt').fill('write');
  await wide.locator('#prompt').press('Enter');
  await wide.locator('.dock').waitFor();
  await picture('desktop', wide);
  await wide.getByRole('button', { name: 'Accept', exact: true }).click();
  await wide.getByRole('log').getByText('Written.').last().waitFor();
});

await step('nothing was asked of other servers', async () => assert.deepEqual(foreign, []));
await browser.close();
