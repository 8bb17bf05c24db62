// The whole page: the list of chats, the chat, what waits for the user, and the prompt.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Client } from "./client.ts";
import { Composer } from "./composer.tsx";
import { Dock } from "./dock.tsx";
import { Broken, Guard } from "./guard.tsx";
import { Log } from "./log.tsx";
import { Panels, type Panel } from "./panels.tsx";
import { Sidebar } from "./sidebar.tsx";
import { Tasks } from "./tasks.tsx";
import { line } from "./text.ts";
import { waitingCalls } from "./state.ts";
import { focusPrompt, takeFocus, useChanges } from "./use.ts";

export function App(): VNode {
  const client = useChanges();
  const [panel, setPanel] = useState<Panel | undefined>();
  const [side, setSide] = useState(false);
  const chat = client.chat;
  const title = line(chat.title, 80) || "New chat";
  useEffect(() => {
    document.title = chat.running ? `● ${title}` : title;
  }, [title, chat.running]);
  useShortcuts(client, setPanel);
  return (
    <div class={`page${side ? " with-side" : ""}`}>
      <Guard of={client.state} instead={<Broken what="The list of chats" />}>
        <Sidebar shown={side} close={() => setSide(false)} />
      </Guard>
      <main>
        <Header title={title} toggleSide={() => setSide(!side)} side={side} setPanel={setPanel} />
        <Problem />
        <Notices />
        <Log chat={chat} key={chat.id} />
        <div class="bottom">
          <Guard of={chat} instead={<Broken what="The list of tasks" />}>
            <Tasks details={chat.tasks} />
          </Guard>
          <Guard of={chat} instead={<Broken what="What waits for you" />}>
            <Dock />
          </Guard>
          <Guard of={chat} instead={<Broken what="The prompt" />}>
            <Composer />
          </Guard>
        </div>
      </main>
      <Announcer />
      {panel && (
        <Guard instead={<Broken what="The panel" />}>
          <Panels panel={panel} show={setPanel} close={() => setPanel(undefined)} />
        </Guard>
      )}
    </div>
  );
}

function beginChat(client: Client): void {
  client.newChat();
  focusPrompt();
}

function useShortcuts(client: Client, setPanel: (panel: Panel) => void): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.altKey && !event.ctrlKey && !event.metaKey && event.code === "KeyN") {
        beginChat(client);
      } else if ((event.key === "F1" && client.connection.host === "browser") || (event.altKey && event.code === "Slash")) {
        setPanel("keys");
      } else if (event.key === "Escape") {
        return focusPrompt();
      } else {
        return;
      }
      event.preventDefault();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [client, setPanel]);
}

function Header({ title, toggleSide, side, setPanel }: { title: string; toggleSide: () => void; side: boolean; setPanel: (panel: Panel) => void }): VNode {
  const client = useChanges();
  const [editing, setEditing] = useState(false);
  const { chat, state } = client;
  const failed = [...state.servers.values()].filter((one) => one.status === "failed" || one.status === "requires-auth").length;
  const jobs = state.jobs.filter((one) => one.status === "running").length;
  const save = (event: Event): void => {
    event.preventDefault();
    const input = (event.currentTarget as HTMLFormElement).elements.namedItem("title") as HTMLInputElement;
    if (input.value.trim()) void client.rename(chat, input.value.trim());
    setEditing(false);
    focusPrompt();
  };
  return (
    <header>
      <button type="button" class="quiet" onClick={toggleSide} aria-expanded={side} aria-controls="chats">
        ☰<span class="wide"> Chats</span>
      </button>
      {editing ? (
        <form onSubmit={save} class="title">
          {/* Not `value`: each rendering would take back what is being typed. */}
          <input name="title" aria-label="Title of the chat" defaultValue={line(chat.title)} ref={takeFocus} onKeyDown={(event) => event.key === "Escape" && setEditing(false)} />
        </form>
      ) : (
        <h1 class="title">
          <button type="button" class="quiet" onClick={() => chat.known && setEditing(true)} title={chat.known ? "Rename" : undefined}>
            {title}
          </button>
        </h1>
      )}
      <button type="button" class="quiet" onClick={() => beginChat(client)} title="New chat (Alt+N)">
        +<span class="wide"> New</span>
      </button>
      <button type="button" class="quiet" onClick={() => setPanel("servers")} aria-label={`Servers and jobs${failed ? `, ${failed} servers need you` : ""}`}>
        <span aria-hidden="true">⚙</span>
        {failed > 0 && <span class="badge bad">{failed}</span>}
        {jobs > 0 && <span class="badge">{jobs}</span>}
      </button>
      <button type="button" class="quiet" onClick={() => setPanel("keys")} aria-label="Keys and help">
        ?
      </button>
    </header>
  );
}

/** What is wrong with the connection, and what to do. */
function Problem(): VNode | null {
  const { connection, port } = useChanges();
  if (connection.open) return null;
  const { problem } = connection;
  if (!problem) return <p class="banner">Connecting…</p>;
  return (
    <div class="banner bad" role="alert">
      <p>
        <strong>{problem.text}</strong> {problem.remedy}
      </p>
      {!problem.final && (
        <button type="button" onClick={() => port.retry()}>
          Try now
        </button>
      )}
    </div>
  );
}

function Notices(): VNode | null {
  const client = useChanges();
  if (client.state.notices.length === 0) return null;
  return (
    <ul class="notices" aria-label="Notices">
      {client.state.notices.slice(-4).map((one) => (
        <li key={one.key} class={one.type === "error" ? "bad" : one.type} role={one.type === "error" ? "alert" : "status"}>
          <span>{line(one.text, 600)}</span>
          <button type="button" class="quiet" aria-label="Dismiss" onClick={() => client.dismiss(one.key)}>
            ✕
          </button>
        </li>
      ))}
    </ul>
  );
}

/** Tells a screen reader what happens, without reading every word of a stream. */
function Announcer(): VNode {
  const { chat, state } = useChanges();
  const last = useRef({ running: false, text: "" });
  const waits = waitingCalls(state, chat)[0];
  if (waits) last.current.text = `Approval needed: ${line(waits.call.summary ?? waits.call.name)}`;
  else if (chat.running !== last.current.running) last.current.text = chat.running ? "eca is working" : "eca has finished";
  last.current.running = chat.running;
  return (
    <p class="hidden" role="status" aria-live="polite">
      {last.current.text}
    </p>
  );
}
