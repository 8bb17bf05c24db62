// The messages of a chat. Only a part of them is in the document: the newest, or those around
// the place that the reader has scrolled to.
import type { VNode } from "preact";
import { useCallback, useEffect, useLayoutEffect, useReducer, useRef } from "preact/hooks";
import type { Client } from "./client.ts";
import { ItemView } from "./items.tsx";
import { Markdown } from "./markdown.tsx";
import type { Chat, Item } from "./state.ts";
import { line } from "./text.ts";
import { useChanges } from "./use.ts";

// How many items are in the document; a long one counts as several.
const tail = 60; // while the newest item is shown
const step = 30; // added when the reader comes near an end
const most = 160;
const near = 800; // pixels

function weight(item: Item): number {
  return 1 + ("text" in item ? item.text.length / 5000 : 0);
}

/** The index that is the given amount before (or, with a negative direction, after) another. */
function away(items: readonly Item[], from: number, much: number, direction: 1 | -1): number {
  let at = from;
  for (let sum = 0; at - direction >= 0 && at - direction <= items.length && sum < much; at -= direction) {
    const passed = items[direction > 0 ? at - 1 : at];
    sum += passed ? weight(passed) : 1;
  }
  return at;
}

interface Window {
  start: number;
  end: number;
  follow: boolean; // the newest are shown, and stay in view
  anchor?: { key: string; top: number }; // the first item in view, and where it is
  count: number; // of items at the last rendering
  top: number; // the last scroll position
  last?: Item | undefined; // at the last rendering
  first?: number | undefined; // key of the first item at the last rendering, to notice earlier ones
}

function atBottom(box: HTMLElement): boolean {
  return box.scrollHeight - box.scrollTop - box.clientHeight < 48;
}

function findAnchor(box: HTMLElement): Window["anchor"] {
  const top = box.getBoundingClientRect().top;
  for (const element of box.querySelectorAll<HTMLElement>("[data-item]")) {
    const rect = element.getBoundingClientRect();
    if (rect.bottom > top) return { key: element.dataset["item"] ?? "", top: rect.top };
  }
  return undefined;
}

/** Moves the window when the reader comes near an end; returns whether it did. */
function move(view: Window, box: HTMLElement, items: readonly Item[]): boolean {
  const { start, end } = view;
  if (box.scrollTop < near && view.start > 0) {
    view.start = away(items, view.start, step, 1);
    view.end = Math.min(view.end, away(items, view.start, most, -1));
  } else if (box.scrollHeight - box.scrollTop - box.clientHeight < near && view.end < view.count) {
    view.end = Math.min(view.count, away(items, view.end, step, -1));
    view.start = Math.max(view.start, away(items, view.end, most, 1));
  }
  return view.start !== start || view.end !== end;
}

/** Finds the place of the window again after items were added or replaced. */
function place(v: Window, items: readonly Item[]): void {
  const count = (v.count = items.length);
  const first = items[0]?.key;
  if (first !== v.first) {
    const shift = items.findIndex((item) => item.key === v.first);
    if (shift > 0) {
      v.start = away(items, v.start + shift, step, 1);
      v.end = Math.min(v.end + shift, away(items, v.start, most, -1));
    } else {
      v.follow = true; // the chat was read again
    }
    v.first = first;
  }
  const last = items.at(-1);
  if (last !== v.last && last?.kind === "user") v.follow = true; // after a prompt, the user wants to see the answer
  v.last = last;
  v.end = Math.min(v.end, count);
  if (v.start >= v.end) v.follow = true;
  if (v.follow) [v.start, v.end] = [away(items, count, tail, 1), count];
}

export function Log({ chat }: { chat: Chat }): VNode {
  const client = useChanges();
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<Window>({ start: 0, end: 0, follow: true, count: 0, top: 0 });
  const [, again] = useReducer((n: number) => n + 1, 0);
  const v = view.current;
  place(v, chat.items);
  const { count } = v;

  const loadEarlier = useCallback(async () => {
    if (box.current) view.current.anchor = findAnchor(box.current);
    view.current.follow = false;
    await client.loadEarlier(chat);
  }, [client, chat]);

  const scrolled = useCallback(() => {
    const el = box.current;
    if (!el) return;
    const w = view.current;
    const followed = w.follow;
    // Only the reader scrolls up: text added at the end does not.
    if (w.end >= w.count && atBottom(el)) w.follow = true;
    else if (el.scrollTop < w.top - 1) w.follow = false;
    w.top = el.scrollTop;
    if (w.follow) {
      if (!followed) again(undefined as never);
      return;
    }
    w.anchor = findAnchor(el);
    const moved = move(w, el, chat.items);
    if (moved || followed !== w.follow) again(undefined as never);
    if (el.scrollTop < near && w.start === 0 && chat.before) void loadEarlier();
  }, [chat, loadEarlier]);

  useLayoutEffect(() => {
    const el = box.current;
    if (!el) return;
    if (v.follow) {
      el.scrollTop = el.scrollHeight;
      v.top = el.scrollTop;
      // The first messages may not fill the box.
      if (chat.before && v.start === 0 && el.scrollTop < near) void client.loadEarlier(chat);
      return;
    }
    const anchor = v.anchor && el.querySelector(`[data-item="${v.anchor.key}"]`);
    if (anchor && v.anchor) el.scrollTop += anchor.getBoundingClientRect().top - v.anchor.top;
  });
  useFollowing(box, view);

  const latest = (): void => {
    v.follow = true;
    again(undefined as never);
  };
  return (
    <div class="log-frame">
      <div class="log" ref={box} onScroll={scrolled} tabIndex={0} role="log" aria-live="off" aria-label="Conversation">
        <Head chat={chat} client={client} more={loadEarlier} atStart={v.start === 0} />
        {chat.items.slice(v.start, v.end).map((item) => (
          <div class="item" data-item={item.key} key={item.key}>
            <ItemView chat={chat} item={item} rev={item.rev} />
          </div>
        ))}
        {v.end === count && chat.running && <Working chat={chat} />}
      </div>
      {!v.follow && (
        <button type="button" class="latest" onClick={latest}>
          ↓ Latest
        </button>
      )}
    </div>
  );
}

/** Keeps the newest item in view when the box is resized, but not when the reader unfolds something. */
function useFollowing(box: { current: HTMLDivElement | null }, view: { current: Window }): void {
  useEffect(() => {
    const el = box.current;
    if (!el) return;
    const sizes = new ResizeObserver(() => {
      if (!view.current.follow) return;
      el.scrollTop = el.scrollHeight;
      view.current.top = el.scrollTop; // a taller box scrolls although its reader did not
    });
    const unfolded = (event: Event): void => {
      if (!(event.target as Element).closest("summary")) return;
      requestAnimationFrame(() => {
        view.current.follow &&= atBottom(el);
        view.current.anchor = findAnchor(el);
      });
    };
    sizes.observe(el);
    el.addEventListener("click", unfolded);
    return () => {
      sizes.disconnect();
      el.removeEventListener("click", unfolded);
    };
  }, [box, view]);
}

function Head({ chat, client, more, atStart }: { chat: Chat; client: Client; more: () => Promise<void>; atStart: boolean }): VNode | null {
  if (chat.before && atStart) {
    return (
      <button type="button" class="quiet earlier" onClick={() => void more()}>
        ↑ Earlier messages
      </button>
    );
  }
  if (chat.items.length > 0) return null;
  return (
    <div class="welcome">
      <Markdown text={client.state.welcome} done />
      <p class="dim">
        <kbd>@</kbd> adds files and other context, <kbd>/</kbd> has commands, <kbd>{client.connection.host === "browser" ? "F1" : "Alt+/"}</kbd> shows all keys.
      </p>
    </div>
  );
}

function Working({ chat }: { chat: Chat }): VNode {
  return (
    <p class="working">
      <span class="pulse" aria-hidden="true" />
      {chat.stopping ? "Stopping" : line(chat.progress, 80) || "Working"}…
    </p>
  );
}
