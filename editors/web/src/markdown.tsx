// Markdown as elements. The text is parsed into tokens and never into HTML: what a model
// writes as HTML is shown as text, links lead to http and https only, images are not loaded.
import { Lexer, type Token, type Tokens } from "marked";
import { Fragment, type ComponentChildren, type VNode } from "preact";
import { memo } from "preact/compat";
import { useRef } from "preact/hooks";
import { Code } from "./code.tsx";
import { safeLink, visible } from "./text.ts";

/** Blocks of more characters are shown as plain text: parsing them would take too long. */
const maxBlock = 48_000;
const chunk = 16_000;

interface Block {
  raw: string;
  token?: Token; // absent: plain text
}

/** Parses a growing text. Text before the last blocks is not parsed again. */
export class Blocks {
  private text = "";
  private parsed: Block[] = [];

  update(text: string): Block[] {
    if (text === this.text) return this.parsed;
    const grown = text.startsWith(this.text);
    this.text = text;
    const open = 3; // the last blocks may still grow: a blank line, and a block that can continue after it
    const kept = grown ? this.parsed.slice(0, Math.max(0, this.parsed.length - open)) : [];
    const at = kept.reduce((n, block) => n + block.raw.length, 0);
    this.parsed = [...kept, ...parse(text.slice(at))];
    return this.parsed;
  }
}

function parse(tail: string): Block[] {
  if (tail.length > maxBlock) {
    const end = tail.lastIndexOf("\n\n", maxBlock);
    if (end > 0) return [...parse(tail.slice(0, end + 2)), ...parse(tail.slice(end + 2))];
    return plain(tail);
  }
  try {
    return new Lexer({ gfm: true }).lex(tail).map((token) => ({ raw: token.raw, token }));
  } catch {
    return [{ raw: tail }]; // nested too deeply
  }
}

function plain(text: string): Block[] {
  const next = text.indexOf("\n\n");
  const own = next < 0 ? text : text.slice(0, next + 2);
  const out: Block[] = [];
  for (let at = 0; at < own.length; at += chunk) out.push({ raw: own.slice(at, at + chunk) });
  return next < 0 ? out : [...out, ...parse(text.slice(next + 2))];
}

export function Markdown({ text, done }: { text: string; done: boolean }): VNode {
  const blocks = useRef(new Blocks());
  // marked changes carriage returns, which would shift our positions.
  const list = blocks.current.update(text.replaceAll("\r", ""));
  return (
    <div class="md">
      {list.map((block, i) => (
        <BlockView key={i} raw={block.raw} token={block.token} open={!done && i === list.length - 1} />
      ))}
    </div>
  );
}

const BlockView = memo(
  ({ raw, token, open }: Block & { open: boolean }): VNode | null => (token ? element(token, open) : <div class="plain">{visible(raw)}</div>),
  (a, b) => a.raw === b.raw && a.open === b.open && !a.token === !b.token,
);

export function element(token: Token, open: boolean): VNode | null {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading": {
      const Tag = `h${Math.min(6, (token as Tokens.Heading).depth + 1)}` as "h2";
      return <Tag>{inline((token as Tokens.Heading).tokens)}</Tag>;
    }
    case "paragraph":
      return <p>{inline((token as Tokens.Paragraph).tokens)}</p>;
    case "code": {
      const { text, lang } = token as Tokens.Code;
      return <Code text={text} lang={lang} open={open} />;
    }
    case "blockquote":
      return <blockquote>{inner((token as Tokens.Blockquote).tokens, open)}</blockquote>;
    case "list":
      return list(token as Tokens.List, open);
    case "table":
      return table(token as Tokens.Table);
    case "hr":
      return <hr />;
    case "text":
      return (token as Tokens.Text).tokens ? <span>{inline((token as Tokens.Text).tokens)}</span> : <span>{visible((token as Tokens.Text).text)}</span>;
    default: // html, above all
      return <p class="source">{visible(token.raw.trimEnd())}</p>;
  }
}

function inner(tokens: Token[], open: boolean): VNode {
  return (
    <>
      {tokens.map((token, i) => (
        <Fragment key={i}>{element(token, open)}</Fragment>
      ))}
    </>
  );
}

function list(token: Tokens.List, open: boolean): VNode {
  const items = token.items.map((item, i) => (
    <li key={i} class={item.task ? "todo" : undefined}>
      {item.task && <span aria-label={item.checked ? "done" : "to do"}>{item.checked ? "☑ " : "☐ "}</span>}
      {inner(item.tokens.filter((one) => one.type !== "checkbox"), open)}
    </li>
  ));
  return token.ordered ? <ol start={token.start === "" ? 1 : token.start}>{items}</ol> : <ul>{items}</ul>;
}

function table(token: Tokens.Table): VNode {
  return (
    // A wide table scrolls, which must be possible by keyboard.
    <div class="table" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            {token.header.map((cell, i) => (
              <th key={i} scope="col">
                {inline(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row, i) => (
            <tr key={i}>
              {row.map((cell, j) => (
                <td key={j}>{inline(cell.tokens)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const entities: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", apos: "'", nbsp: "\u00a0" };

/** Resolves the character references that Markdown allows. */
function plainText(text: string): string {
  return visible(text.replace(/&(#39|[a-z]+);/g, (all, name: string) => entities[name] ?? all));
}

function inline(tokens: Token[] | undefined): ComponentChildren {
  return tokens?.map((token, i) => <Fragment key={i}>{span(token)}</Fragment>);
}

function span(token: Token): ComponentChildren {
  switch (token.type) {
    case "strong":
      return <strong>{inline((token as Tokens.Strong).tokens)}</strong>;
    case "em":
      return <em>{inline((token as Tokens.Em).tokens)}</em>;
    case "del":
      return <del>{inline((token as Tokens.Del).tokens)}</del>;
    case "codespan":
      return <code>{visible((token as Tokens.Codespan).text)}</code>;
    case "br":
      return <br />;
    case "escape":
      return plainText((token as Tokens.Escape).text);
    case "link":
    case "image":
      return link(token as Tokens.Link | Tokens.Image);
    case "text": {
      const { tokens: more, text } = token as Tokens.Text;
      return more ? inline(more) : plainText(text);
    }
    default:
      return visible(token.raw);
  }
}

function link(token: Tokens.Link | Tokens.Image): VNode {
  const href = safeLink(token.href);
  const label = token.type === "link" ? inline((token as Tokens.Link).tokens) : visible(`🖼 ${token.text || token.href}`);
  if (!href) {
    return (
      <span>
        {label} <span class="address">({visible(token.href)})</span>
      </span>
    );
  }
  // A link text that looks like an address must not hide a different target.
  const says = token.type === "link" ? safeLink(token.text) : undefined;
  return (
    <a href={href} title={visible(href)} target="_blank" rel="noopener noreferrer">
      {label}
      {says !== undefined && new URL(says).host !== new URL(href).host && <span class="address"> ({visible(new URL(href).host)})</span>}
    </a>
  );
}
