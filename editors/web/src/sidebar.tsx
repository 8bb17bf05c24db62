// The stored chats of the workspace.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { waitingCalls } from "./state.ts";
import { ago, line } from "./text.ts";
import { takeFocus, useChanges } from "./use.ts";

/** How many chats are listed; the others are found by their title. */
const shownChats = 100;

export function Sidebar({ shown, close }: { shown: boolean; close: () => void }): VNode {
  const client = useChanges();
  const [query, setQuery] = useState("");
  const [deleting, setDeleting] = useState("");
  useEffect(() => {
    if (shown && client.connection.ready) void client.refreshList();
  }, [shown, client]);
  const wanted = query.toLowerCase();
  const found = client.state.list.filter((one) => (one.title ?? "").toLowerCase().includes(wanted));
  const choose = (id: string): void => {
    client.select(id);
    if (matchMedia("(max-width: 700px)").matches) close();
  };
  return (
    <nav id="chats" aria-label="Chats" hidden={!shown} onKeyDown={(event) => event.key === "Escape" && close()}>
      <button type="button" class="quiet narrow" onClick={close}>
        ← Back to the chat
      </button>
      <input type="search" placeholder="Find a chat" aria-label="Find a chat by its title" value={query} onInput={(event) => setQuery(event.currentTarget.value)} />
      <ul>
        {found.slice(0, shownChats).map((one) => {
          const chat = client.state.chats.get(one.id);
          const waits = chat ? waitingCalls(client.state, chat).length : 0;
          return (
            <li key={one.id} class={one.id === client.current ? "current" : undefined}>
              <button type="button" class="quiet name" aria-current={one.id === client.current ? "page" : undefined} onClick={() => choose(one.id)}>
                <span>{line(one.title, 80) || "Untitled"}</span>
                <small>
                  {waits > 0 ? "waits for you" : one.status === "running" || chat?.running ? "running" : ago(one.updatedAt, Date.now())}
                </small>
              </button>
              {deleting === one.id ? (
                <button type="button" class="danger" ref={takeFocus} onBlur={() => setDeleting("")} onClick={() => void client.remove(one.id)}>
                  Delete?
                </button>
              ) : (
                <button type="button" class="quiet delete" aria-label={`Delete ${line(one.title, 60) || "the chat"}`} onClick={() => setDeleting(one.id)}>
                  ✕
                </button>
              )}
            </li>
          );
        })}
      </ul>
      {found.length === 0 && <p class="dim">{query ? "No chat has this title." : "No chats in this folder yet."}</p>}
      {found.length > shownChats && <p class="dim">{found.length - shownChats} more: search by title.</p>}
    </nav>
  );
}
