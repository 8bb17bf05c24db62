// Measures the chat page in Chromium; see BenchmarkPage. The argument and the printed figures are JSON.
import { createRequire } from 'node:module';
import path from 'node:path';

const given = JSON.parse(process.argv[2]);
const require = createRequire(path.join(given.modules, 'x'));
const { chromium } = require('playwright-core');
const browser = await chromium.launch({ executablePath: given.chromium, args: ['--no-sandbox'] });
const at = (times, part) => times.toSorted((a, b) => a - b)[Math.floor(part * (times.length - 1))];

// typing returns the times from each key until its character is in the document, and until the next
// frame has been painted.
async function typing(page, selector) {
  await page.evaluate((selector) => {
    globalThis.times = { shown: [], painted: [] };
    document.querySelector(selector).addEventListener('input', (e) => {
      const began = e.timeStamp;
      queueMicrotask(() => times.shown.push(performance.now() - began));
      requestAnimationFrame(() => setTimeout(() => times.painted.push(performance.now() - began)));
    });
  }, selector);
  await page.focus(selector);
  for (let i = 0; i < given.keys; i++) {
    await page.keyboard.press('x');
    await page.waitForTimeout(20 + (i % 7)); // not in step with the frames
  }
  return page.evaluate(() => globalThis.times);
}

const empty = await browser.newPage();
await empty.setContent('<textarea id="prompt"></textarea>');
const floor = await typing(empty, '#prompt');

const page = await browser.newPage();
await page.goto(given.link);
await page.getByText('Welcome to ECA').waitFor();
const prompt = page.locator('#prompt');
await prompt.fill('flood');
await prompt.press('Enter');
await page.getByRole('log').getByText('word word').first().waitFor();
const words = () => page.evaluate(() => ({
  count: document.querySelector('[role=log]').textContent.match(/word/g).length, at: performance.now(),
}));
const before = await words();
const flooded = await typing(page, '#prompt');
const after = await words();
await page.keyboard.press('Control+a');
await page.keyboard.press('Delete');
await page.keyboard.press('Escape');
await page.getByRole('button', { name: 'Stop', exact: true }).waitFor({ state: 'detached' });

const opened = [];
for (let i = 0; i < given.opens; i++) {
  await page.keyboard.press('Alt+n');
  await page.reload(); // the page does not know the chat any more
  await page.getByText('Welcome to ECA').waitFor();
  await page.getByRole('button', { name: /Chats/ }).click();
  await page.getByPlaceholder('Find a chat').fill('The long chat');
  await page.locator('nav .name').getByText('The long chat').waitFor();
  opened.push(await page.evaluate(async () => {
    const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const began = performance.now();
    document.querySelector('nav .name').click();
    while (!document.querySelector('[role=log]').textContent.includes('question 2499')) await frame();
    return performance.now() - began;
  }));
}
await browser.close();
console.log(JSON.stringify({
  'deltas/s': (after.count - before.count) / (after.at - before.at) * 1000,
  'typed-p95-ms': at(flooded.shown, 0.95), 'floor-typed-p95-ms': at(floor.shown, 0.95),
  'painted-p95-ms': at(flooded.painted, 0.95), 'floor-painted-p95-ms': at(floor.painted, 0.95),
  'opened-p50-ms': at(opened, 0.5), 'opened-max-ms': at(opened, 1),
}));
