import assert from "node:assert/strict";
import { test } from "node:test";
import { applyOffer, offers, wordBefore } from "../src/complete.ts";
import { ago, line, rejection, safeLink, seconds, shortPath, tokens, visible } from "../src/text.ts";

test("what a text hides is written out, and nothing else changes", () => {
  for (const [text, want] of [
    ["a\n\tb", "a\n\tb"],
    ["one\r\ntwo\rthree", "one\ntwo␍three"],
    ["\u001b[2K\u0007\u0000\u007f\u009b1A", "␛[2K␇␀\\u007f\\u009b1A"],
    ["\u202ea\u2066b\u2069\u200e\u061c", "\\u202ea\\u2066b\\u2069\\u200e\\u061c"],
    ["a\u200bb\ufeffc\u2060\u00ad", "a\\u200bb\\ufeffc\\u2060\\u00ad"],
    ["\u2028\u2029\u{e0041}", "\\u2028\\u2029\\u{e0041}"],
    ["👩\u200d💻 می\u200cروم é", "👩\u200d💻 می\u200cروم é"],
  ] as const) {
    assert.equal(visible(text), want);
  }
});

test("only http and https can be followed", () => {
  assert.equal(safeLink("https://example.com/a?b#c"), "https://example.com/a?b#c");
  assert.equal(safeLink("HTTP://example.com"), "http://example.com/");
  for (const bad of ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\nscript:alert(1)", " javascript:alert(1)", "data:text/html,x", "vbscript:x", "command:run", "vscode:x", "file:///etc/passwd", "blob:x", "//example.com", "/etc/passwd", "x", ""]) {
    assert.equal(safeLink(bad), undefined, bad);
  }
});

test("short forms", () => {
  assert.equal(line(" a\n b\u001b ", 5), "a b␛");
  assert.equal(line("abcdefgh", 5), "abcd…");
  assert.deepEqual([tokens(999), tokens(1500), tokens(45_600), tokens(1_200_000)], ["999", "1.5k", "46k", "1.2M"]);
  assert.deepEqual([seconds(undefined), seconds(99), seconds(1234), seconds(61_000)], ["", "", "1.2 s", "1 min 1 s"]);
  assert.deepEqual([ago(0, 9), ago(1, 60_001), ago(1, 3_600_001 * 3), ago(1, 86_400_000 * 3)], ["", "1 min", "3 h", "2 d"]);
  assert.equal(shortPath("/ws/a/b.go", ["/other", "/ws"]), "a/b.go");
  assert.equal(shortPath("/wsx/a", ["/ws"]), "/wsx/a");
});

test("the word that is completed", () => {
  assert.deepEqual(wordBefore("/do", 3), { sign: "/", query: "do", at: 0 });
  assert.deepEqual(wordBefore("see @src/ma", 11), { sign: "@", query: "src/ma", at: 4 });
  assert.deepEqual(wordBefore("see @a and #b", 13), { sign: "#", query: "b", at: 11 });
  assert.deepEqual(wordBefore("see @a and", 6), { sign: "@", query: "a", at: 4 });
  for (const none of ["a/b", "me@home", "see @a b", "say /do", "a @b@c"]) assert.equal(wordBefore(none, none.length), undefined, none);
});

test("what is offered, and taken", () => {
  const word = { sign: "@", query: "a", at: 4 } as const;
  const list = offers(word, [{ type: "file", path: "/ws/a.go" }, { type: "repoMap" }, { type: "mcpResource", uri: "db://x", name: "x", server: "db" }], ["/ws"]);
  assert.deepEqual(list.map((one) => one.label), ["@a.go", "@repoMap", "@db:x"]);
  const first = list[0];
  assert.ok(first);
  assert.deepEqual(applyOffer("see @a now", 6, word, first), { text: "see @a.go now", cursor: 9 });
  assert.deepEqual(applyOffer("see @a", 6, word, first), { text: "see @a.go ", cursor: 10 });
  const commands = offers({ sign: "/", query: "co", at: 0 }, [{ name: "doctor" }, { name: "compact", description: "shortens", arguments: [{ name: "what" }] }], []);
  assert.deepEqual(commands.map((one) => [one.label, one.about]), [["/compact", "<what> shortens"], ["/doctor", ""]]);
});

test("a rejection is in words, not in the protocol's codes", () => {
  assert.equal(rejection("userChoiceDeny"), "You rejected it.");
  assert.equal(rejection("the window was closed\u202e"), "the window was closed\\u202e");
});
