// One item of a chat.
import type { ComponentChildren, VNode } from "preact";
import { memo } from "preact/compat";
import { useState } from "preact/hooks";
import { CallView } from "./call.tsx";
import { CopyButton, useCut } from "./code.tsx";
import { Broken, Guard } from "./guard.tsx";
import { Markdown } from "./markdown.tsx";
import type { Chat, Item } from "./state.ts";
import { seconds, visible } from "./text.ts";
import { focusPrompt, takeFocus, useClient } from "./use.ts";

/** Shows plain text that could not be rendered otherwise, for example because it is nested too deeply. */
function Fallback({ text, children }: { text: string; children: ComponentChildren }): VNode {
  return <Guard instead={<div class="plain">{visible(text)}</div>}>{children}</Guard>;
}

function Reason({ item }: { item: Item & { kind: "reason" } }): VNode {
  const [open, setOpen] = useState(false);
  return (
    <details class="reason" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{item.done ? ["Thought", seconds(item.ms)].filter(Boolean).join(" for ") : "Thinking…"}</summary>
      {open && (
        <Fallback text={item.text}>
          <Markdown text={item.text} done={item.done} />
        </Fallback>
      )}
    </details>
  );
}

function User({ chat, item }: { chat: Chat; item: Item & { kind: "user" } }): VNode {
  const client = useClient();
  const [asking, setAsking] = useState<"" | "rollback" | "flag">("");
  const { shown, more } = useCut(item.text);
  const id = item.contentId;
  const rollback = (include: string[]): void => {
    setAsking("");
    focusPrompt();
    if (id) void client.rollback(chat, id, include);
  };
  const flag = (event: Event): void => {
    event.preventDefault();
    const input = (event.currentTarget as HTMLFormElement).elements.namedItem("flag") as HTMLInputElement;
    if (id && input.value.trim()) void client.flag(chat, id, input.value.trim());
    setAsking("");
    focusPrompt();
  };
  return (
    <article class="user" aria-label="You">
      <div class="plain">{visible(shown)}</div>
      {more}
      {id && (
        <div class="actions" onKeyDown={(event) => event.key === "Escape" && setAsking("")}>
          {asking === "" && (
            <>
              <CopyButton text={item.text} what="prompt" />
              <button type="button" class="quiet" onClick={() => setAsking("rollback")} title="Take back this prompt and what followed">
                Roll back
              </button>
              <button type="button" class="quiet" onClick={() => void client.fork(chat, id)} title="Go on from here in a new chat">
                Fork
              </button>
              <button type="button" class="quiet" onClick={() => setAsking("flag")} title="Mark this place">
                Flag
              </button>
            </>
          )}
          {asking === "rollback" && (
            <>
              <span>Take back from here:</span>
              <button type="button" class="danger" ref={takeFocus} onClick={() => rollback(["messages", "tools"])}>
                Messages and files
              </button>
              <button type="button" onClick={() => rollback(["messages"])}>
                Messages
              </button>
              <button type="button" onClick={() => rollback(["tools"])}>
                Files
              </button>
              <button type="button" class="quiet" onClick={() => setAsking("")}>
                Cancel
              </button>
            </>
          )}
          {asking === "flag" && (
            <form onSubmit={flag}>
              <input name="flag" aria-label="Text of the flag" placeholder="What is here" ref={takeFocus} />
              <button type="submit">Flag</button>
            </form>
          )}
        </div>
      )}
    </article>
  );
}

const imageTypes = /^image\/(png|jpeg|gif|webp)$/;

function Shown({ chat, item }: { chat: Chat; item: Item }): VNode {
  switch (item.kind) {
    case "user":
      return <User chat={chat} item={item} />;
    case "assistant":
      return (
        <article class="assistant" aria-label="eca">
          <Fallback text={item.text}>
            <Markdown text={item.text} done={item.done} />
          </Fallback>
          {item.done && (
            <div class="actions">
              <CopyButton text={item.text} what="answer" />
            </div>
          )}
        </article>
      );
    case "notice":
      return (
        <div class={`notice${item.failed ? " bad" : ""}`} role={item.failed ? "alert" : undefined}>
          <Fallback text={item.text}>
            <Markdown text={item.text} done />
          </Fallback>
        </div>
      );
    case "reason":
      return <Reason item={item} />;
    case "call":
      return <CallView call={item} rev={item.rev} />;
    case "hook":
      return (
        <details class={`call ${item.failed ? "failed" : "done"}`}>
          <summary>
            <span aria-hidden="true">{item.failed ? "✗" : "✓"}</span> Hook {visible(item.name)}
            {item.failed && " failed"}
          </summary>
          <div class="plain mono">{visible(item.output)}</div>
        </details>
      );
    case "image":
      return imageTypes.test(item.mediaType) ? (
        <img class="image" src={`data:${item.mediaType};base64,${item.base64}`} alt="Image of a tool's result" />
      ) : (
        <p class="dim">An image of the type {visible(item.mediaType)}, which is not shown.</p>
      );
    case "flag":
      return <p class="flag">⚑ {visible(item.text)}</p>;
  }
}

function Guarded(props: { chat: Chat; item: Item; rev: number }): VNode {
  return (
    <Guard instead={<Broken what="This message" />}>
      <Shown {...props} />
    </Guard>
  );
}

export const ItemView = memo(Guarded, (a, b) => a.item === b.item && a.rev === b.rev && a.chat === b.chat);
