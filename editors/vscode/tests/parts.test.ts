// The parts that need no VS Code.
import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";
import { isDeclared, kindOf, type Declared } from "../src/checked";
import { assetName, assetUrl } from "../src/download";
import { encode, FrameReader, type Message } from "../src/frames";
import { sides } from "../src/patch";
import { compareVersions, line } from "../src/text";
import { unzip } from "../src/zip";

function read(chunks: Buffer[]): { messages: Message[]; problems: string[] } {
  const messages: Message[] = [];
  const problems: string[] = [];
  const reader = new FrameReader((message) => messages.push(message), (problem) => problems.push(problem));
  for (const chunk of chunks) reader.push(chunk);
  return { messages, problems };
}

const one: Message = { jsonrpc: "2.0", method: "a/b", params: { text: "äöü 😀" } };

void test("messages in pieces of every size", () => {
  const stream = Buffer.concat([encode(one), encode({ ...one, id: 2 }), encode(one)]);
  for (const size of [1, 2, 7, 64, stream.length]) {
    const chunks = Array.from({ length: Math.ceil(stream.length / size) }, (_, i) => stream.subarray(i * size, (i + 1) * size));
    const { messages, problems } = read(chunks);
    assert.deepEqual(messages, [one, { ...one, id: 2 }, one]);
    assert.deepEqual(problems, []);
  }
});

void test("what is not a message is skipped", () => {
  const junk = ["panic: oh\n\n", "Content-Length: x\r\n\r\n{}", "Content-Length: 99999999999\r\n\r\n{}", "z".repeat(20_000)];
  for (const text of junk) {
    const { messages, problems } = read([encode(one), Buffer.from(text), encode(one)]);
    assert.deepEqual(messages, [one, one], text.slice(0, 30));
    assert.ok(problems.length > 0, text.slice(0, 30));
  }
  const framed = ["{", "[1]", "null", "7"].map((text) => Buffer.from(`Content-Length: ${text.length}\r\n\r\n${text}`));
  const { messages, problems } = read([...framed, encode(one)]);
  assert.deepEqual(messages, [one]);
  assert.equal(problems.length, 4);
});

void test("a message that cannot be used is reported, and the next one is read", () => {
  const problems: string[] = [];
  let read = 0;
  const reader = new FrameReader(() => {
    if (++read === 1) throw new TypeError("of another shape");
  }, (problem) => problems.push(problem));
  reader.push(Buffer.concat([encode(one), encode(one)]));
  assert.equal(read, 2);
  assert.match(problems.join(), /cannot be used.*of another shape/);
});

void test("a large message in small chunks is read in reasonable time", () => {
  const big: Message = { jsonrpc: "2.0", method: "x", params: "y".repeat(50 << 20) };
  const stream = encode(big);
  const chunks = Array.from({ length: Math.ceil(stream.length / 65_536) }, (_, i) => stream.subarray(i * 65_536, (i + 1) * 65_536));
  assert.equal((read(chunks).messages[0]?.params as string).length, 50 << 20);
});

const before = "a\nb\nc\nd\ne\nf\ng\nh\n";
const after = "a\nB\nB2\nc\nd\ne\nf\nh\ni\n";
const diff = "--- x\n+++ x\n@@ -1,4 +1,5 @@\n a\n-b\n+B\n+B2\n c\n d\n@@ -6,3 +7,3 @@\n f\n-g\n h\n+i\n";

void test("both sides of a change, proposed and made", () => {
  assert.deepEqual(sides(before, diff), { before, after, made: false });
  assert.deepEqual(sides(after, diff), { before, after, made: true });
  assert.deepEqual(sides(`0\n${before}`, diff)?.after, `0\n${after}`); // it has moved
  assert.equal(sides("something else\n", diff), undefined);
  assert.equal(sides(before, "no diff"), undefined);
});

void test("a new file, a deleted one, and lines that look like headers", () => {
  assert.deepEqual(sides("", "@@ -0,0 +1,2 @@\n+one\n+two\n")?.after, "one\ntwo\n");
  assert.deepEqual(sides("one\ntwo\n", "@@ -0,0 +1,2 @@\n+one\n+two\n"), { before: "", after: "one\ntwo\n", made: true });
  assert.deepEqual(sides("one\n", "@@ -1 +0,0 @@\n-one\n")?.after, "");
  assert.deepEqual(sides("-- x\n", "@@ -1 +1 @@\n--- x\n+++ y\n")?.after, "++ y\n");
  assert.deepEqual(sides("x", "@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n")?.after, "y");
  assert.deepEqual(sides("a\r\nb\r\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n")?.made, false);
});

function zip(name: string, contents: Buffer): Buffer {
  const [file, packed] = [Buffer.from(name), deflateRawSync(contents)];
  const common = Buffer.alloc(26);
  common.writeUInt16LE(8, 4);
  common.writeUInt32LE(packed.length, 14);
  common.writeUInt32LE(contents.length, 18);
  common.writeUInt16LE(file.length, 22);
  const local = Buffer.concat([Buffer.from("PK\x03\x04"), common, file, packed]);
  const central = Buffer.concat([Buffer.from("PK\x01\x02\x14\x00"), common, Buffer.alloc(14), file]);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(local.length, 16);
  return Buffer.concat([local, central, end]);
}

void test("an archive gives its file, or says what is wrong", () => {
  const contents = Buffer.from("program ".repeat(1000));
  const good = zip("eca", contents);
  assert.deepEqual(unzip(good, "eca", 1 << 20), contents);
  assert.throws(() => unzip(good, "eca.exe", 1 << 20), /has no eca\.exe/);
  assert.throws(() => unzip(good, "eca", 100), /larger/);
  assert.throws(() => unzip(Buffer.from("<html>"), "eca", 100), /not a zip/);
  assert.throws(() => unzip(good.subarray(20), "eca", 1 << 20));
});

void test("a program is downloaded from safe places only", () => {
  assert.equal(assetName("linux", "x64"), "eca-native-static-linux-amd64.zip");
  assert.equal(assetName("sunos", "x64"), undefined);
  assert.equal(assetUrl("https://x.example/v1/", "a.zip").href, "https://x.example/v1/a.zip");
  assert.equal(assetUrl("http://127.0.0.1:1/v1", "a.zip").href, "http://127.0.0.1:1/v1/a.zip");
  for (const bad of ["http://x.example", "file:///tmp", "http://127.0.0.1.x.example"]) assert.throws(() => assetUrl(bad, "a.zip"), /not safe/);
});

void test("versions and texts", () => {
  assert.ok(compareVersions("0.9.0", "0.10.0") < 0);
  assert.ok(compareVersions("1.0.0-rc1", "0.10.0") > 0);
  assert.equal(compareVersions("0.1.0", "0.1.0"), 0);
  assert.equal(line("a\n\u001b[31m b\u202e", 50), "a ·[31m b·");
  assert.equal(line("abcdef", 4), "abc…");
  assert.deepEqual([line({ a: 1 }), line(undefined), line(5)], ['{"a":1}', "", "5"]);
});

void test("a file is checked if a running extension declares its language", () => {
  const grammar: Declared = { isActive: true, packageJSON: { contributes: { languages: [{ id: "go", extensions: [".go"] }, { id: "make", filenames: ["Makefile"] }] } } };
  const server = (isActive: boolean, packageJSON: Declared["packageJSON"]): Declared => ({ isActive, packageJSON: { main: "x.js", ...packageJSON } });
  const gopls = { activationEvents: ["onLanguage:go"] };
  const cases: [string, Declared[], string | undefined, boolean][] = [
    ["/w/a.go", [grammar], undefined, false],
    ["/w/a.go", [grammar, server(true, gopls)], undefined, true],
    ["/w/A.GO", [grammar, server(true, gopls)], undefined, true],
    ["/w/a.go", [grammar, server(false, gopls)], undefined, false], // it has not started
    ["/w/a.txt", [grammar, server(true, gopls)], undefined, false],
    ["/w/a.txt", [grammar, server(true, gopls)], "go", true], // the user chose the language
    ["/w/a.go", [grammar, server(true, gopls)], "plaintext", false],
    ["/w/Makefile", [grammar, server(true, { contributes: { languages: [{ id: "make" }] } })], undefined, true],
    ["/w/a.txt", [grammar, server(true, { activationEvents: ["*", "onLanguage", "onStartupFinished", 7] })], undefined, false],
    ["/w/a.go", [grammar, server(true, { activationEvents: "onLanguage:go", contributes: { languages: [{}] } })], undefined, false],
  ];
  for (const [path, extensions, open, want] of cases) assert.equal(isDeclared(path, extensions, open), want, `${path} ${open ?? ""} ${JSON.stringify(extensions)}`);
  assert.deepEqual(["/w/x.y/a.test.Go", "/w.d/Makefile", "/w/.env"].map(kindOf), [".go", "makefile", ".env"]);
});
