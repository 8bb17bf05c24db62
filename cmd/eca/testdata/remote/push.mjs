// Notifications in our own page. See TestRemotePush. A push service is out of reach for a test, so the
// browser's subscription is made up, and what the service would send is handed to the service worker.
// What it prints are the steps that went well.
import assert from 'node:assert/strict';

import { browser, given, step, waitFor } from './common.mjs';

const origin = `http://${given.host}`;
const context = await browser.newContext();
await context.grantPermissions(['notifications'], { origin });
await context.addInitScript(() => {
  let made = null;
  PushManager.prototype.subscribe = async (options) => {
    const raw = Uint8Array.from(atob(options.applicationServerKey.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
    const subscription = {
      endpoint: 'https://push.invalid/subscription', options: { applicationServerKey: raw.buffer },
      toJSON: () => ({ endpoint: subscription.endpoint, keys: { p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4', auth: 'BTBZMqHH6r4Tts7J_aSIgg' } }),
      unsubscribe: async () => { made = null; return true; },
    };
    made = subscription;
    return subscription;
  };
  PushManager.prototype.getSubscription = async () => made;
});
const page = await context.newPage();
const problems = [];
page.on('console', (message) => { if (message.type() === 'error') problems.push(message.text()); });
page.on('pageerror', (error) => problems.push(String(error)));
page.setDefaultTimeout(given.patience);
const control = page.getByRole('button', { name: /^Notify this device/ });
const answered = (method) => page.waitForResponse((r) => r.url().endsWith('/api/v1/push') && r.request().method() === method);
const cdp = await context.newCDPSession(page);
const registrations = new Map();
cdp.on('ServiceWorker.workerRegistrationUpdated', (e) => { for (const r of e.registrations) registrations.set(r.scopeURL, r.registrationId); });
await cdp.send('ServiceWorker.enable');
let worker;
const shown = () => worker.evaluate(async () => (await self.registration.getNotifications()).map((n) => ({ title: n.title, body: n.body, tag: n.tag })));
const deliver = (kind, chat, from = cdp) => from.send('ServiceWorker.deliverPushMessage', { origin, registrationId: registrations.get(`${origin}/`), data: JSON.stringify({ kind, chat, folder: 'todo' }) });

await step('the device subscribes', async () => {
  await page.goto(`${origin}/#token=${given.token}`);
  await page.locator('#prompt').waitFor();
  await page.getByRole('button', { name: /^Servers and jobs/ }).click();
  await control.waitFor();
  assert.equal(await control.getAttribute('aria-pressed'), 'false');
  const [response] = await Promise.all([answered('POST'), control.click()]);
  assert.equal(response.status(), 204);
  await waitFor('the switch is on', async () => await control.getAttribute('aria-pressed') === 'true');
  await waitFor('the service worker', async () => context.serviceWorkers().length === 1 && registrations.size === 1);
  [worker] = context.serviceWorkers();
});

await step('a visible page needs no notification', async () => {
  await deliver('approval', 'visible');
  await new Promise((done) => { setTimeout(done, 1000); });
  assert.deepEqual(await shown(), []);
});

await step('the device unsubscribes', async () => {
  const [response] = await Promise.all([answered('DELETE'), control.click()]);
  assert.equal(response.status(), 204);
  await waitFor('the switch is off', async () => await control.getAttribute('aria-pressed') === 'false');
});

await step('without a page, the newest notification of a chat is shown', async () => {
  const other = await context.newPage();
  const session = await context.newCDPSession(other);
  await session.send('ServiceWorker.enable');
  await page.close();
  await waitFor('the page is gone', () => worker.evaluate(async () => (await self.clients.matchAll()).length === 0));
  await deliver('approval', 'one', session);
  await waitFor('a notification', async () => (await shown()).length === 1);
  await deliver('finished', 'one', session);
  await waitFor('the newer one', async () => (await shown())[0].body === 'eca has finished');
  await deliver('question', 'two', session);
  const want = [{ title: 'eca: todo', body: 'eca has finished', tag: 'one' }, { title: 'eca: todo', body: 'A question waits for your answer', tag: 'two' }];
  await waitFor('two notifications', async () => (await shown()).length === 2);
  assert.deepEqual((await shown()).sort((a, b) => a.tag.localeCompare(b.tag)), want);
});

await step('a link to a chat opens it', async () => {
  const linked = await context.newPage();
  await linked.goto(`${origin}/#chat=one`);
  await linked.locator('#prompt').waitFor();
  assert.equal(await linked.evaluate(() => JSON.parse(sessionStorage.getItem('eca')).chat), 'one');
  assert.equal(new URL(linked.url()).hash, '');
});

await step('the page reported no errors', async () => assert.deepEqual(problems, []));
await browser.close();
