// What the programs of this folder share. The arguments come as JSON; see browserRig.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import path from 'node:path';

export const given = JSON.parse(process.argv[2]);
export const require = createRequire(path.join(given.modules, 'x'));
const { chromium } = require('playwright-core');
export const launch = (args) => chromium.launch({ executablePath: given.browser, args: ['--no-sandbox', ...args] });
export const browser = await launch([]);

/** Has the test do something (see newBrowserRig), and returns the answer. */
export async function control(name, parameters) {
  const answer = await fetch(`${given.site}/control/${name}?${new URLSearchParams(parameters)}`);
  assert.equal(answer.status, 200);
  return answer.text();
}

const begun = Date.now();

/** Runs a step; its name is printed when it went well. All pages are shown when not. */
export async function step(name, work) {
  try {
    await work();
  } catch (e) {
    console.error(`${name}: ${e.stack}`);
    for (const [i, page] of browser.contexts().flatMap((c) => c.pages()).entries()) {
      console.error(`--- page ${i + 1}\n${await page.locator('body').innerText().then((text) => text.replace(/(w\d+ ){10,}/g, '… '), () => '')}`);
      if (given.pictures) await page.screenshot({ path: path.join(given.pictures, `failed-${i + 1}.png`) }).catch(() => {});
    }
    await browser.close();
    process.exit(1);
  }
  console.log(`${((Date.now() - begun) / 1000).toFixed(1)} s: ${name}`);
}

/** Asserts that a text has the words w0 to w(n-1), each once and in order. */
export function assertWords(text, n, what) {
  const words = text.match(/w\d+/g) ?? [];
  for (let i = 0; i < Math.max(n, words.length); i++) assert.equal(words[i], i < n ? `w${i}` : undefined, `${what}: word ${i} of ${words.length}`);
}

export async function waitFor(what, condition, patience = given.patience) {
  const end = Date.now() + patience;
  while (!(await condition())) {
    assert.ok(Date.now() < end, what);
    await new Promise((done) => { setTimeout(done, 50); });
  }
}
