// Looks at pages in Chromium: what axe finds, what the page's script says, and whether keys,
// filters and links do what they should. Prints a line for each thing that is wrong.
const { createRequire } = require("node:module");
const fs = require("node:fs");
const { modules, chromium, file, live } = JSON.parse(process.argv[2]);
const packages = createRequire(modules + "/");
const axe = fs.readFileSync(packages.resolve("axe-core/axe.min.js"), "utf8");
const wrong = (text) => console.log(text);

async function check(page, what) {
  await page.evaluate(axe);
  const { violations, passes } = await page.evaluate(() => window.axe.run());
  for (const v of violations) { wrong(`${what}: ${v.id}: ${v.nodes.map((n) => n.html.slice(0, 200)).join(" | ")}`); }
  if (passes.length < 10) { wrong(`${what}: axe looked at ${passes.length} rules only`); }
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (wide > 0) { wrong(`${what}: it is ${wide} pixels too wide`); }
}

async function alone(page) {
  await page.goto(file);
  const rows = () => page.locator(".grid tbody tr:visible").count();
  const all = await rows();
  await page.keyboard.press("/");
  await page.keyboard.type("task 3");
  if (await rows() !== 1) { wrong(`the filter leaves ${await rows()} rows`); }
  await page.reload();
  if (await rows() !== 1) { wrong("the filter is not in the address"); }
  await page.fill("input[type=search]", "");
  await page.selectOption("select[name=status]", "failed");
  if (await rows() < 1 || await rows() >= all) { wrong(`${await rows()} of ${all} rows failed`); }
  await page.selectOption("select[name=status]", "");
  await page.selectOption("select[name=sort]", "rate");
  if (!/failed|error/.test(await page.locator(".grid tbody tr").first().innerText())) { wrong("the worst is not first"); }
  await page.locator(".grid tbody td a").first().focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  const at = await page.evaluate(() => { const c = document.activeElement.closest("td"); return c ? c.parentNode.rowIndex + "," + c.cellIndex : "nowhere"; });
  if (at !== "2,2") { wrong(`arrows lead to ${at}`); }
  await page.keyboard.press("Enter");
  await page.waitForSelector("details.scenario:target[open]").catch(() => wrong("Enter does not open the result"));
  const before = page.url();
  await page.keyboard.press("n");
  await page.waitForFunction((url) => location.href !== url, before).catch(() => wrong("n goes nowhere"));
  if (!/failed|error/.test(await page.locator("details.scenario:target").getAttribute("data-status"))) { wrong("n does not go to one that did not pass"); }
}

async function served(page) {
  await page.goto(live);
  await page.selectOption("select[name=status]", "failed");
  await page.waitForURL(/status=failed/);
  await page.locator(".grid tbody td a.failed").first().click();
  await page.waitForURL(/result/);
  const first = page.url();
  await page.keyboard.press("n");
  await page.waitForFunction((url) => location.href !== url, first);
  await check(page, "a result that is served");
  await page.goto(live + "compare");
  await check(page, "a comparison that is served");
}

(async () => {
  const browser = await packages("playwright-core").chromium.launch({ executablePath: chromium, args: ["--no-sandbox"] });
  const page = await browser.newPage();
  page.setDefaultTimeout(30000);
  page.on("pageerror", (e) => wrong("error: " + e.message));
  page.on("console", (m) => { if (m.type() === "error") { wrong("console: " + m.text()); } });
  for (const [width, height, colorScheme] of [[1280, 900, "light"], [768, 1024, "dark"], [360, 740, "light"]]) {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme });
    for (const url of [file, live]) {
      await page.goto(url);
      await page.evaluate(() => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
      await check(page, `${url === file ? "the file" : "the overview"} at ${width} pixels, ${colorScheme}`);
    }
  }
  await alone(page);
  await served(page);
  await browser.close();
  console.log("looked");
})().catch((e) => { wrong(String(e)); process.exit(1); });
