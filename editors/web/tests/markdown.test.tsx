import assert from "node:assert/strict";
import { test } from "node:test";
import type { ComponentChildren, VNode } from "preact";
import { Blocks, element } from "../src/markdown.tsx";

interface Shown {
  tags: Set<string>;
  links: string[];
  text: string;
  handlers: string[];
}

/** Walks what would be rendered. */
function walk(node: ComponentChildren, out: Shown): Shown {
  if (Array.isArray(node)) for (const one of node) walk(one as ComponentChildren, out);
  else if (typeof node === "string" || typeof node === "number") out.text += String(node);
  else if (node && typeof node === "object" && "props" in node) {
    const vnode = node as VNode<Record<string, unknown>>;
    if (typeof vnode.type === "string") {
      out.tags.add(vnode.type);
      if (vnode.props["href"]) out.links.push(String(vnode.props["href"]));
      for (const name of Object.keys(vnode.props)) if (/^on|^dangerously|^src/.test(name)) out.handlers.push(`${vnode.type}.${name}`);
    } else {
      out.tags.add(vnode.type.name);
      out.text += typeof vnode.props["text"] === "string" ? vnode.props["text"] : "";
    }
    walk(vnode.props["children"] as ComponentChildren, out);
  }
  return out;
}

function show(markdown: string): Shown {
  const out: Shown = { tags: new Set(), links: [], text: "", handlers: [] };
  for (const block of new Blocks().update(markdown)) {
    if (block.token) walk(element(block.token, false), out);
    else out.text += block.raw;
  }
  return out;
}

test("Markdown becomes elements", () => {
  const { tags, links } = show("# A\n\n**b** *c* `d` ~~e~~\n\n- x\n- [ ] y\n\n1. z\n\n> q\n\n---\n\n| a |\n|---|\n| 1 |\n\n```js\nlet x\n```\n\n[l](https://example.com)");
  for (const tag of ["h2", "strong", "em", "code", "del", "ul", "ol", "li", "blockquote", "hr", "table", "th", "td", "Code", "a"]) assert.ok(tags.has(tag), tag);
  assert.deepEqual(links, ["https://example.com/"]);
});

const attacks = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "a <b onclick=alert(1)>b</b>",
  "<iframe src='https://evil.example'></iframe>",
  "<a href='javascript:alert(1)'>x</a>",
  "[x](javascript:alert(1))",
  "[x](JAVASCRIPT:alert(1) 'title')",
  "[x](java&#115;cript:alert(1))",
  "[x][1]\n\n[1]: javascript:alert(1)",
  "<javascript:alert(1)>",
  "[x](data:text/html;base64,PHNjcmlwdD4=)",
  "[x](command:workbench.action.terminal.new)",
  "[x](vscode://file/etc/passwd)",
  "![x](javascript:alert(1))",
  "<svg><script>alert(1)</script></svg>",
  "<!-- --><style>*{display:none}</style>",
  "**<script>**</script>",
  "| <script>x</script> |\n|---|\n| <img src=x onerror=y> |",
];

test("what a model writes as HTML is text; links lead to http and https alone", () => {
  for (const attack of attacks) {
    const { tags, links, handlers } = show(attack);
    for (const bad of ["script", "img", "iframe", "svg", "style", "b"]) assert.ok(!tags.has(bad), `${bad} from ${attack}`);
    assert.deepEqual(links.filter((href) => !/^https?:/.test(href)), [], attack);
    assert.deepEqual(handlers, [], attack);
  }
  assert.ok(show("<script>alert(1)</script>").text.includes("<script>alert(1)</script>"));
  assert.ok(show("a &lt;b&gt; &amp;lt;").text.includes("a <b> &lt;"));
});

test("an address that stands for another says so", () => {
  assert.ok(show("[https://nice.example](https://evil.example/x)").text.includes("(evil.example)"));
  assert.ok(!show("[https://nice.example](https://nice.example/x)").text.includes("("));
});

test("a picture is a link and loads nothing", () => {
  const { tags, links } = show("![logo](https://tracker.example/p.png)");
  assert.deepEqual([tags.has("img"), links], [false, ["https://tracker.example/p.png"]]);
});

test("a text that grows shows the same as the whole, however it is cut", () => {
  const text = "# A\n\npara *one*\ntwo\n\n- a\n  - b\n\n- c\n\n```go\nx\n\ny\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> q\n> r\n\nend\n===\n\nlast <b>x</b>\n";
  const whole = show(text);
  for (const size of [1, 3, 7, 50]) {
    const blocks = new Blocks();
    let list = blocks.update("");
    for (let at = 0; at < text.length; at += size) list = blocks.update(text.slice(0, at + size));
    assert.equal(list.map((block) => block.raw).join(""), text, String(size));
    const grown: Shown = { tags: new Set(), links: [], text: "", handlers: [] };
    for (const block of list) if (block.token) walk(element(block.token, false), grown);
    assert.deepEqual([grown.text, [...grown.tags].sort()], [whole.text, [...whole.tags].sort()], String(size));
  }
});

test("no part of a long text is lost, and no block of it is too long to be parsed", () => {
  const text = `intro\n\n${"word and another\n".repeat(20_000)}\n\n# End\n\n${"x".repeat(100_000)}`;
  const list = new Blocks().update(text);
  assert.equal(list.map((block) => block.raw).join(""), text);
  assert.ok(list.some((block) => block.token?.type === "heading"));
  assert.ok(list.every((block) => block.token === undefined || block.raw.length <= 48_000));
});

test("deep nesting does not stop the page", () => {
  for (const text of [">".repeat(5000), "- ".repeat(2000), "*".repeat(5000), "[".repeat(5000), "`".repeat(5001)]) {
    assert.equal(new Blocks().update(text).map((block) => block.raw).join(""), text);
  }
});
