// Our own page, calls of other pages and the reference's page in Firefox, which is driven over WebDriver BiDi. See
// TestRemoteFirefox. What it prints are the steps that went well.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const given = JSON.parse(process.argv[2]);
const profile = mkdtempSync(path.join(tmpdir(), 'eca-firefox-'));
const firefox = spawn(given.browser, ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0', 'about:blank'], { stdio: ['ignore', 'ignore', 'pipe'] });
const address = await new Promise((found, failed) => {
  let text = '';
  firefox.on('exit', () => failed(new Error(`Firefox ended: ${text}`)));
  firefox.stderr.on('data', (data) => {
    text += data;
    const line = /BiDi listening on (\S+)/.exec(text);
    if (line) found(line[1]);
  });
});
const socket = new WebSocket(`${address}/session`);
await new Promise((opened, failed) => { socket.onopen = opened; socket.onerror = failed; });
const calls = new Map();
socket.onmessage = (event) => {
  const message = JSON.parse(event.data);
  const call = calls.get(message.id);
  calls.delete(message.id);
  if (message.type === 'error') call?.failed(new Error(`${message.error}: ${message.message}`));
  else call?.done(message.result);
};
let last = 0;
const send = (method, params) => new Promise((done, failed) => {
  calls.set(++last, { done, failed });
  socket.send(JSON.stringify({ id: last, method, params }));
});
await send('session.new', { capabilities: { alwaysMatch: { acceptInsecureCerts: true } } });
const { contexts: [{ context }] } = await send('browsingContext.getTree', {});
const open = (url) => send('browsingContext.navigate', { context, url, wait: 'complete' });
const evaluate = async (expression) => {
  const answer = await send('script.evaluate', { expression, target: { context }, awaitPromise: true });
  assert.equal(answer.type, 'success', answer.exceptionDetails?.text);
  return answer.result.value;
};
const waitFor = async (what, expression) => {
  const end = Date.now() + given.patience;
  while (!(await evaluate(expression))) {
    assert.ok(Date.now() < end, what);
    await new Promise((done) => { setTimeout(done, 50); });
  }
};
const press = (name) => evaluate(`[...document.querySelectorAll('button')].find((b) => (b.ariaLabel ?? b.innerText).trim().startsWith(${JSON.stringify(name)})).click()`);

let code = 0;
try {
  for (const site of [given.site, given.secure]) {
    await open(site);
    for (const host of ['eca.localhost', 'localhost', '127.0.0.1']) {
      const call = `fetch('http://${host}:${given.port}/api/v1/session', { headers: { Authorization: 'Bearer ${given.token}' } }).then((r) => r.status, String)`;
      assert.equal(await evaluate(call), 200, `from ${site} to ${host}`);
    }
  }
  console.log('14: a page on localhost, and one over HTTPS, call the API');
  await open(`http://${given.host}/#token=${given.token}`);
  await waitFor('the page is there', `document.querySelector('#prompt') !== null`);
  assert.equal(await evaluate('isSecureContext && location.hash === ""'), true);
  await evaluate(`{ const prompt = document.querySelector('#prompt'); prompt.focus(); prompt.value = 'hello'; prompt.dispatchEvent(new Event('input', { bubbles: true })); }`);
  await waitFor('the prompt can be sent', `[...document.querySelectorAll('button')].some((b) => b.innerText.trim() === 'Send' && !b.disabled)`);
  await press('Send');
  await waitFor('the answer', `document.querySelector('[role=log]').innerText.includes('Hello,')`);
  console.log('14: a prompt in our own page is answered');
  await press('Servers and jobs');
  await waitFor('the switch for notifications', `[...document.querySelectorAll('button')].some((b) => b.innerText.startsWith('Notify this device'))`);
  console.log('the page offers notifications');
  if (given.client) {
    await open(`${given.site}/remote?host=${given.host}&pass=${given.token}&protocol=http`);
    await waitFor("the reference's page is connected", `document.querySelector('textarea.field') !== null`);
    await evaluate(`{
      const field = document.querySelector('textarea.field');
      field.focus();
      Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value').set.call(field, 'hello');
      field.dispatchEvent(new Event('input', { bubbles: true }));
    }`);
    await evaluate(`document.querySelector('textarea.field').dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }))`);
    await waitFor('the answer in the reference\'s page', `[...document.querySelectorAll('.assistant-message')].some((m) => m.innerText.includes('Hello,'))`);
    console.log("14: a prompt in the reference's page is answered");
  }
} catch (error) {
  console.error(error);
  code = 1;
}
firefox.removeAllListeners('exit');
firefox.on('exit', () => { rmSync(profile, { recursive: true, force: true }); process.exit(code); });
firefox.kill();
