// Highlighted code, and diffs.
import { common, createLowlight } from "lowlight";
import { Fragment, type ComponentChildren, type VNode } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { visible } from "./text.ts";

const lowlight = createLowlight(common);

/** Longer code is not highlighted: it would take too long. */
const maxColoured = 40_000;
/** How many lines are shown at first. */
const maxLines = 400;

type Node = { type: string; value?: string; properties?: { className?: unknown }; children?: Node[] };

function colours(nodes: Node[] | undefined): ComponentChildren {
  return nodes?.map((node, i) =>
    node.type === "text" ? (
      visible(node.value ?? "")
    ) : (
      <span key={i} class={Array.isArray(node.properties?.className) ? node.properties.className.join(" ") : undefined}>
        {colours(node.children)}
      </span>
    ),
  );
}

function highlight(text: string, lang: string | undefined): ComponentChildren {
  const name = lang?.toLowerCase().match(/^[\w+#-]+/)?.[0];
  if (!name || text.length > maxColoured || !lowlight.registered(name)) return visible(text);
  try {
    return colours(lowlight.highlight(name, text).children as Node[]);
  } catch {
    return visible(text);
  }
}

export function CopyButton({ text, what = "code" }: { text: string; what?: string }): VNode {
  const [copied, setCopied] = useState("");
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(""), 2000);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => setCopied("Copied"),
      () => setCopied("Not allowed"),
    );
  };
  return (
    <button type="button" class="quiet copy" onClick={copy} aria-label={copied || `Copy ${what}`}>
      {copied || "Copy"}
    </button>
  );
}

/** The first lines of a long text, and a button for the others. */
export function useCut(text: string): { shown: string; more: VNode | null } {
  const [all, setAll] = useState(false);
  const cut = useMemo(() => {
    let at = -1;
    for (let n = 0; n < maxLines; n++) {
      at = text.indexOf("\n", at + 1);
      if (at < 0) break;
    }
    return at < 0 ? Math.min(text.length, maxColoured * 4) : Math.min(at, maxColoured * 4);
  }, [text]);
  if (all || cut >= text.length) return { shown: text, more: null };
  return {
    shown: text.slice(0, cut),
    more: (
      <button type="button" class="quiet" onClick={() => setAll(true)}>
        Show all ({Math.ceil(text.length / 1024)} KB)
      </button>
    ),
  };
}

export function Code({ text, lang, open }: { text: string; lang?: string; open?: boolean }): VNode {
  const { shown, more } = useCut(text);
  // Code that is still being streamed is not highlighted: it would be parsed again with each word.
  const body = useMemo(() => (open ? visible(shown) : highlight(shown, lang)), [shown, lang, open]);
  return (
    <figure class="code">
      <figcaption>
        <span>{visible(lang?.split(/\s/)[0] ?? "") || "text"}</span>
        <CopyButton text={text} />
      </figcaption>
      {/* It scrolls, which must be possible by keyboard. */}
      <pre tabIndex={0} role="group" aria-label="Code">
        <code>{body}</code>
      </pre>
      {more}
    </figure>
  );
}

const lineKinds: Record<string, string> = { "+": "added", "-": "removed", "@": "hunk" };

export function Diff({ text }: { text: string }): VNode {
  const { shown, more } = useCut(text);
  return (
    <figure class="code diff">
      <pre tabIndex={0} role="group" aria-label="Changes">
        {shown.split("\n").map((line, i) => (
          <Fragment key={i}>
            <span class={lineKinds[line[0] ?? ""]}>{visible(line) || " "}</span>
            {"\n"}
          </Fragment>
        ))}
      </pre>
      {more}
    </figure>
  );
}
