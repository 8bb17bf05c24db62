// The first start of our extension: no folder, no program, no provider. Then programs that are
// not what they should be. The arguments come as JSON; see TestVSCodeFirstStart.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { crc32, deflateRawSync } from 'node:zlib';
import { given, gone, problems, start, steps, until, Window } from './workbench.mjs';

const settings = { 'eca.downloadUrl': `${given.mirror}/v{version}` };
const workbench = await start(settings);
let w = await Window.open(workbench, undefined);
const step = steps(workbench, () => w);
const banner = () => w.frame.locator('.banner');
const asset = { x64: 'eca-native-static-linux-amd64.zip', arm64: 'eca-native-linux-aarch64.zip' }[process.arch];
const release = (name) => path.join(given.releases, 'v0.1.0', name);
const picture = async (name) => { if (given.pictures) await w.page.screenshot({ path: path.join(given.pictures, `${name}.png`) }); };

/** A zip archive of one file. */
function zip(name, contents) {
  const [file, packed] = [Buffer.from(name), deflateRawSync(contents, { level: 1 })];
  const common = Buffer.alloc(26); // from "version needed" to the lengths
  common.writeUInt16LE(20, 0);
  common.writeUInt16LE(8, 4);
  common.writeUInt32LE(crc32(contents), 10);
  common.writeUInt32LE(packed.length, 14);
  common.writeUInt32LE(contents.length, 18);
  common.writeUInt16LE(file.length, 22);
  const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, file, packed]);
  const central = Buffer.concat([Buffer.from('PK\x01\x02\x14\x00'), common, Buffer.alloc(14), file]);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(1, 8);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(local.length, 16);
  return Buffer.concat([local, central, end]);
}

const take = () => w.answer('Download eca', 'Download');
const again = async () => {
  await w.page.waitForTimeout(1_000); // of many notifications at once, VS Code shows the first only
  await w.button('Try now').click();
};

await step('without a folder, the view says so', async () => {
  await w.tab.click();
  await banner().getByText('No folder is open').waitFor();
  await w.page.context().close();
});

await step('without a program, a download is offered, and refused', async () => {
  w = await Window.open(workbench, given.root);
  await w.tab.click();
  await w.answer('eca is not installed', 'Not Now');
  await banner().getByText('eca is not installed').waitFor();
  await picture('missing');
});

await step('a release that is not there', async () => {
  await again();
  await take();
  await banner().getByText('the server answered 404').waitFor();
});

await step('a download without a checksum, and with a wrong one, is refused', async () => {
  fs.mkdirSync(path.dirname(release(asset)), { recursive: true });
  const archive = zip('eca', fs.readFileSync(given.eca));
  fs.writeFileSync(release(asset), archive);
  await again();
  await take();
  await banner().getByText(`${asset}.sha256: the server answered 404`).waitFor();
  fs.writeFileSync(release(`${asset}.sha256`), `${'0'.repeat(64)}  ${asset}\n`);
  await again();
  await take();
  await banner().getByText('is damaged or was replaced').waitFor();
  fs.writeFileSync(release(`${asset}.sha256`), `${createHash('sha256').update(archive).digest('hex')}  ${asset}\n`);
});

await step('with the right one it starts, and the demo model answers', async () => {
  await again();
  await take();
  await w.frame.getByText('Welcome to ECA').waitFor();
  await w.notification('built-in demo model'); // $/showMessage
  await w.say('What is here?');
  await w.log.locator('.assistant').first().waitFor();
  await gone(w.stop);
});

await step('a setting that names something else is said, and so is a program that ends at once', async () => {
  const name = path.join(given.scratch, 'data', 'Machine', 'settings.json');
  const set = (program) => fs.writeFileSync(name, JSON.stringify({ ...settings, 'eca.path': program }));
  const script = (file, text) => {
    fs.writeFileSync(path.join(given.scratch, file), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    return path.join(given.scratch, file);
  };
  set(path.join(given.scratch, 'nothing'));
  await banner().getByText('cannot be run').waitFor();
  set(script('other', 'echo another program'));
  await banner().getByText('it is not eca').waitFor();
  set(script('old', 'echo eca 0.0.9'));
  await banner().getByText('needs 0.1.0 or newer').waitFor();
  set(script('ends', '[ "$1" = --version ] && echo eca 0.1.0 && exit; echo out of order >&2; exit 3'));
  await banner().getByText('ended with code 3').waitFor();
  assert.match(await banner().innerText(), /out of order/);
  await until('the status bar warns', async () => /eca/.test(await w.status.innerText()));
  set('');
  await gone(banner());
  await w.say('And now?');
  await w.log.locator('.assistant').nth(1).waitFor();
});
assert.deepEqual(problems, []);
await workbench.close();
