// The prompt, with completion of @contexts, #files and /commands, and the chat's settings.
import type { VNode } from "preact";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { applyOffer, offers, wordBefore, type Offer, type Word } from "./complete.ts";
import type { ContextItem } from "./protocol.ts";
import { Settings } from "./settings.tsx";
import { line } from "./text.ts";
import { useChanges } from "./use.ts";

const maxImage = 8 << 20;

export function Composer(): VNode {
  const client = useChanges();
  const { chat, connection } = client;
  const [text, setText] = useState(() => client.port.load().draft ?? "");
  const [attached, setAttached] = useState<ContextItem[]>([]);
  const named = useRef(new Map<string, ContextItem>()); // what the words of the text stand for
  const sending = useRef(false); // a prompt waits for the daemon
  const area = useRef<HTMLTextAreaElement>(null);
  const measured = useRef(""); // the text at the last rendering
  const cursor = useRef<number | undefined>(undefined); // where it goes once the new text is there
  const menu = useMenu(area, (next, at, offer) => {
    if (offer.context) named.current.set(offer.label, offer.context);
    cursor.current = at;
    setText(next);
  });

  useEffect(() => client.port.save({ ...client.port.load(), draft: text }), [client, text]);
  useLayoutEffect(() => {
    const el = area.current;
    if (!el) return;
    // Immediately: a later change would move the cursor while the user already types.
    if (cursor.current !== undefined) el.setSelectionRange(cursor.current, cursor.current);
    cursor.current = undefined;
    const grown = text.startsWith(measured.current);
    measured.current = text;
    // Most keys only add text: measuring it at the old height needs one layout of the page, not three.
    if (grown && el.style.height && el.scrollHeight <= el.clientHeight) return;
    // The row keeps its height while the text is measured: otherwise the log, which gets the rest of the
    // page, would move up for a moment, as if its reader had scrolled.
    const row = el.parentElement;
    if (row) row.style.minHeight = `${row.offsetHeight}px`;
    el.style.height = "auto";
    el.style.height = `${Math.min(el.scrollHeight, innerHeight * 0.4)}px`;
    if (row) row.style.minHeight = "";
  }, [text]);
  useEffect(() => {
    const news = client.inserted;
    if (!news) return;
    client.inserted = undefined;
    setText((old) => (old && news.text ? `${old.trimEnd()}\n${news.text}` : old || news.text));
    setAttached((old) => [...old, ...news.contexts]);
    area.current?.focus();
  });

  const send = async (): Promise<void> => {
    const message = text.trim();
    if (!message || sending.current) return;
    sending.current = true;
    const reached = await client.reach();
    sending.current = false;
    if (!reached) return;
    const contexts = [...attached, ...[...named.current].filter(([label]) => message.includes(label)).map(([, context]) => context)];
    menu.close();
    setText((now) => (now.trim() === message ? "" : now));
    if (await client.send(message, contexts)) {
      setAttached((now) => now.filter((one) => !attached.includes(one)));
      named.current.clear();
    } else {
      setText((now) => now || message); // nothing that was typed is lost
    }
  };
  const pressed = (event: KeyboardEvent): void => {
    if (event.isComposing || menu.pressed(event)) return;
    if (event.key === "Enter" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      void send();
    } else if (event.key === "Escape" && chat.running && !text) {
      client.stop();
    }
  };
  const addFiles = useCallback((files: Iterable<File>) => {
    for (const file of files) {
      if (!file.type.startsWith("image/")) continue;
      if (file.size > maxImage) client.fail(`The image ${file.name} was not added`, "it is larger than 8 MB");
      else void readImage(file).then((context) => setAttached((old) => [...old, context]));
    }
  }, [client]);
  const pasted = (event: ClipboardEvent): void => {
    const files = [...(event.clipboardData?.files ?? [])];
    if (files.length === 0) return;
    event.preventDefault();
    addFiles(files);
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        addFiles(event.dataTransfer?.files ?? []);
      }}
    >
      {chat.steer && (
        <p class="steer">
          <span>eca reads this before its next step: {line(chat.steer, 200)}</span>
          <button type="button" class="quiet" onClick={() => setText((old) => [client.unsteer(chat), old].filter(Boolean).join("\n"))}>
            Take back
          </button>
        </p>
      )}
      {attached.length > 0 && (
        <ul class="chips" aria-label="Attached">
          {attached.map((one, i) => (
            <li key={i}>
              {chipLabel(one)}
              <button type="button" class="quiet" aria-label={`Remove ${chipLabel(one)}`} onClick={() => setAttached(attached.filter((other) => other !== one))}>
                ✕
              </button>
            </li>
          ))}
        </ul>
      )}
      {menu.view}
      <div class="prompt">
        <textarea
          id="prompt"
          ref={area}
          rows={1}
          autoFocus
          value={text}
          aria-label="Prompt"
          placeholder={chat.running ? "Steer the running turn" : "Ask, or say what should change"}
          onInput={(event) => {
            setText(event.currentTarget.value);
            menu.typed();
          }}
          onKeyDown={pressed}
          onPaste={pasted}
          onBlur={() => menu.close()}
          aria-autocomplete="list"
          aria-controls={menu.open ? "completions" : undefined}
          aria-activedescendant={menu.active}
        />
        {chat.running && (
          <button type="button" class="stop" onClick={() => client.stop()} disabled={chat.stopping} title="Stop (Escape in an empty prompt)">
            Stop
          </button>
        )}
        <button type="submit" class="primary" disabled={!text.trim() || !connection.ready}>
          {chat.running ? "Steer" : "Send"}
        </button>
      </div>
      <Settings />
    </form>
  );
}

function chipLabel(context: ContextItem): string {
  const name = line(context.name ?? context.path?.split(/[\\/]/).at(-1) ?? context.uri ?? context.type, 60);
  const { linesRange } = context;
  return linesRange ? `${name}:${linesRange.start}–${linesRange.end}` : name;
}

async function readImage(file: File): Promise<ContextItem> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return { type: "image", name: file.name, mediaType: file.type, base64: btoa(binary) };
}

interface Menu {
  open: boolean;
  active: string | undefined;
  view: VNode | null;
  typed(): void;
  close(): void;
  pressed(event: KeyboardEvent): boolean;
}

/** The menu of completions for the word before the cursor. */
function useMenu(area: { current: HTMLTextAreaElement | null }, accept: (text: string, cursor: number, offer: Offer) => void): Menu {
  const client = useChanges();
  const [shown, setShown] = useState<{ word: Word; list: Offer[]; at: number } | undefined>();
  const asked = useRef(0);
  const close = useCallback(() => {
    asked.current++;
    setShown(undefined);
  }, []);
  const typed = (): void => {
    const mine = ++asked.current;
    const el = area.current;
    const word = el && wordBefore(el.value, el.selectionStart);
    if (!word || !client.connection.ready) return setShown(undefined);
    client.complete(word.sign, word.query).then(
      (result) => {
        if (mine !== asked.current) return;
        const list = offers(word, result, client.connection.folders);
        setShown(list.length > 0 ? { word, list, at: 0 } : undefined);
      },
      () => setShown(undefined),
    );
  };
  const take = (offer: Offer | undefined): void => {
    const el = area.current;
    if (!el || !shown || !offer) return;
    const { text, cursor } = applyOffer(el.value, el.selectionStart, shown.word, offer);
    close();
    accept(text, cursor, offer);
  };
  const pressed = (event: KeyboardEvent): boolean => {
    if (!shown) return false;
    const { list, at } = shown;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") setShown({ ...shown, at: (at + (event.key === "ArrowDown" ? 1 : list.length - 1)) % list.length });
    else if (event.key === "Tab" || (event.key === "Enter" && !event.shiftKey)) take(list[at]);
    else if (event.key === "Escape") close();
    else return false;
    event.preventDefault();
    return true;
  };
  const view = shown ? (
    <ul id="completions" role="listbox" aria-label="Completions">
      {shown.list.map((offer, i) => (
        <li
          key={offer.label}
          id={`completion-${i}`}
          role="option"
          aria-selected={i === shown.at}
          ref={(el) => {
            if (i === shown.at) el?.scrollIntoView({ block: "nearest" });
          }}
          onMouseDown={(event) => {
            event.preventDefault(); // the prompt keeps the focus
            take(offer);
          }}
        >
          <span>{line(offer.label, 120)}</span> <small>{line(offer.about, 100)}</small>
        </li>
      ))}
    </ul>
  ) : null;
  return { open: shown !== undefined, active: shown ? `completion-${shown.at}` : undefined, view, typed, close, pressed };
}
