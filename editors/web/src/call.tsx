// A tool call: its line, and its details.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { CopyButton, Diff, useCut } from "./code.tsx";
import { ItemView } from "./items.tsx";
import { type Call, type Chat } from "./state.ts";
import { line, pretty, rejection, seconds, shortPath, visible } from "./text.ts";
import { useChanges, useClient } from "./use.ts";

const icons: Record<Call["stage"], [string, string]> = {
  preparing: ["…", "preparing"], waiting: ["?", "waits for you"], running: ["▶", "running"], done: ["✓", "done"], failed: ["✗", "failed"], rejected: ["⊘", "rejected"],
};

/** The size in lines up to which a change is shown unfolded. */
const smallDiff = 24;
/** How many items of a subagent are shown. */
const childItems = 40;

export function CallView({ call }: { call: Call; rev: number }): VNode {
  const { details } = call;
  const small = details?.type === "fileChange" && (details.diff ?? "").split("\n").length <= smallDiff && call.stage !== "waiting";
  const [open, setOpen] = useState<boolean | undefined>();
  const [icon, words] = icons[call.stage];
  const shown = open ?? small;
  return (
    <details class={`call ${call.stage}`} open={shown} onToggle={(event) => event.currentTarget.open !== shown && setOpen(event.currentTarget.open)}>
      <summary>
        <span role="img" aria-label={words}>
          {icon}
        </span>
        <span class="summary">{callTitle(call)}</span>
        {details?.type === "fileChange" && (
          <span class="counts">
            <span class="added">+{details.linesAdded ?? 0}</span> <span class="removed">−{details.linesRemoved ?? 0}</span>
          </span>
        )}
        {details?.type === "subagent" && <span class="dim">step {details.step ?? 0}</span>}
        <span class="dim">{call.stage === "done" ? seconds(call.ms) : call.stage === "preparing" && call.size > 4096 ? `${Math.round(call.size / 1024)} KB` : call.stage === "preparing" ? "" : words}</span>
      </summary>
      {shown && (
        <div class="body">
          <CallDetails call={call} />
          {/* Of a change that was made, the change says enough. */}
          {(details?.type === "fileChange" && call.stage === "done" ? [] : call.outputs).map((output, i) => (
            <Output key={i} text={output} />
          ))}
          {call.reason && call.stage === "rejected" && <p class="dim">{rejection(call.reason)}</p>}
        </div>
      )}
    </details>
  );
}

export function callTitle(call: Call): string {
  return line(call.summary, 300) || `${line(call.server, 60)}: ${line(call.name, 60)}`;
}

/** The effect of a call: its change, its command, its subagent, or its arguments. */
export function CallDetails({ call }: { call: Call }): VNode {
  const client = useClient();
  const { details } = call;
  const command = call.arguments?.["command"];
  const { host, folders } = client.connection;
  return (
    <>
      <p class="dim">
        {line(`${call.server}__${call.name}`, 120)}
        {call.stage === "waiting" && call.permission && ` · ${visible(call.permission)}`}
      </p>
      {details?.type === "fileChange" ? (
        <>
          <p class="path">
            {visible(shortPath(details.path ?? "", folders))}
            {host === "vscode" && (
              <button type="button" class="quiet" onClick={() => client.openInEditor(details)}>
                Open diff
              </button>
            )}
          </p>
          <Diff text={details.diff ?? ""} />
        </>
      ) : typeof command === "string" ? (
        <Command call={call} command={command} />
      ) : details?.type === "subagent" ? (
        <Subagent id={details.subagentChatId ?? ""} about={details.agentName ?? ""} task={call.arguments?.["task"]} />
      ) : call.arguments && Object.keys(call.arguments).length > 0 ? (
        <Output text={pretty(call.arguments)} />
      ) : null}
    </>
  );
}

function Command({ call, command }: { call: Call; command: string }): VNode {
  const others = Object.entries(call.arguments ?? {}).filter(([key]) => key !== "command");
  return (
    <>
      <figure class="code">
        <figcaption>
          <span>command</span>
          <CopyButton text={command} what="command" />
        </figcaption>
        <pre tabIndex={0} role="group" aria-label="Command" class="command">
          {visible(command)}
        </pre>
      </figure>
      {others.map(([key, value]) => (
        <p key={key} class="dim">
          {visible(key)}: {visible(pretty(value))}
        </p>
      ))}
      {call.details?.effects && (
        <ul class="effects">
          {call.details.effects.map((one, i) => (
            <li key={i}>{visible([one.command, one.effect, one.target, one.reason].filter(Boolean).join(" · "))}</li>
          ))}
        </ul>
      )}
      {call.details?.sandbox && (
        <p class="dim">
          sandbox: {visible(String(call.details.sandbox.level))}, network: {visible(String(call.details.sandbox.network))}
        </p>
      )}
    </>
  );
}

function Output({ text }: { text: string }): VNode {
  const { shown, more } = useCut(text);
  return (
    <figure class="code output">
      <pre tabIndex={0} role="group" aria-label="Text">
        {visible(shown)}
      </pre>
      {more}
    </figure>
  );
}

function Subagent({ id, about, task }: { id: string; about: string; task: unknown }): VNode {
  const { state } = useChanges();
  const chat: Chat | undefined = state.chats.get(id);
  return (
    <article class="subagent" aria-label={`Subagent ${line(about, 40)}`}>
      {typeof task === "string" && <div class="plain dim">{visible(task)}</div>}
      {chat?.items.slice(-childItems).map((item) => <ItemView key={item.key} chat={chat} item={item} rev={item.rev} />)}
    </article>
  );
}
