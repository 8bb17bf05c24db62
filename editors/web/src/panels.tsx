// Panels over the page: servers, jobs and providers; keys.
import type { VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Login } from "./login.tsx";
import { Notifications } from "./notifications.tsx";
import type { Job, JobOutput, ToolServer } from "./protocol.ts";
import { line, visible } from "./text.ts";
import { useChanges } from "./use.ts";

export type Panel = "servers" | "keys";

export function Panels({ panel, show, close }: { panel: Panel; show: (panel: Panel) => void; close: () => void }): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  // Before the next key press, which must reach the dialog.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={close} onClick={(event) => event.target === event.currentTarget && event.currentTarget.close()} aria-label={panel === "keys" ? "Keys" : "Servers and jobs"}>
      <div class="panel">
        <div class="tabs">
          <button type="button" class="quiet" aria-pressed={panel === "servers"} onClick={() => show("servers")}>
            Servers and jobs
          </button>
          <button type="button" class="quiet" aria-pressed={panel === "keys"} onClick={() => show("keys")}>
            Keys
          </button>
          <span class="grow" />
          <button type="button" class="quiet" aria-label="Close" onClick={() => dialog.current?.close()}>
            ✕
          </button>
        </div>
        {panel === "keys" ? <Keys /> : <Servers />}
      </div>
    </dialog>
  );
}

const keys: [string, string][] = [
  ["Enter", "sends the prompt; while a turn runs, steers it"],
  ["Shift+Enter", "begins a new line"],
  ["Escape", "goes back to the prompt; in an empty prompt: stops the turn"],
  ["@  #  /", "complete contexts, files, commands; Tab or Enter takes one"],
  ["Alt+A", "accepts the call that waits"],
  ["Alt+S", "accepts it and remembers, until eca ends"],
  ["Alt+R", "rejects it"],
  ["Alt+W", "rejects it, and says what to do instead"],
  ["Alt+1 … Alt+9", "choose an answer to a question"],
  ["Alt+N", "begins a new chat"],
  ["Tab, Enter", "reach and press everything else; folded parts open with Enter"],
];

function Keys(): VNode {
  const { connection } = useChanges();
  return (
    <>
      <h2>Keys</h2>
      <table class="keys">
        <tbody>
          {keys.map(([key, does]) => (
            <tr key={key}>
              <th scope="row">
                <kbd>{key}</kbd>
              </th>
              <td>{does}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="dim">
        eca {visible(connection.version)} in {connection.folders.map(visible).join(", ")}
      </p>
    </>
  );
}

function Servers(): VNode {
  const { state } = useChanges();
  const servers = [...state.servers.values()].sort((a, b) => a.name.localeCompare(b.name));
  return (
    <>
      <Notifications />
      <h2>Tool servers</h2>
      <ul class="rows">
        {servers.map((server) => (
          <Server key={server.name} server={server} />
        ))}
      </ul>
      <h2>Background jobs</h2>
      {state.jobs.length === 0 && <p class="dim">None.</p>}
      <ul class="rows">
        {state.jobs.map((job) => (
          <JobRow key={job.id} job={job} />
        ))}
      </ul>
      <h2>Providers</h2>
      <ul class="rows">
        {[...state.providers.values()].map((provider) => (
          <Login key={provider.id} provider={provider} />
        ))}
      </ul>
    </>
  );
}

function Server({ server }: { server: ToolServer }): VNode {
  const { rpc } = useChanges();
  const status = server.disabled ? "disabled" : (server.status ?? "");
  const act = (label: string, method: string): VNode => (
    <button type="button" onClick={() => rpc.notify(method, { name: server.name })} aria-label={`${label}: ${line(server.name, 60)}`}>
      {label}
    </button>
  );
  const enabled = server.tools?.filter((tool) => !tool.disabled).length ?? 0;
  return (
    <li>
      <div class="row">
        <strong>{line(server.name, 60)}</strong>
        <span class={`state ${visible(status)}`}>{visible(status)}</span>
        {server.tools && (
          <span class="dim">
            {enabled} of {server.tools.length} tools
          </span>
        )}
        <span class="grow" />
        {server.type === "mcp" && (
          <>
            {status === "requires-auth" && act("Log in", "mcp/connectServer")}
            {server.hasAuth && act("Log out", "mcp/logoutServer")}
            {status === "running" && act("Stop", "mcp/stopServer")}
            {(status === "stopped" || status === "failed") && act("Start", "mcp/startServer")}
            {server.disabled ? act("Enable", "mcp/enableServer") : act("Disable", "mcp/disableServer")}
          </>
        )}
      </div>
      {server.error && <p class="bad plain">{visible(server.error)}</p>}
    </li>
  );
}

function JobRow({ job }: { job: Job }): VNode {
  const client = useChanges();
  const [output, setOutput] = useState<JobOutput | undefined>();
  const read = async (): Promise<void> => setOutput(await client.try<JobOutput>("The output was not read", "jobs/readOutput", { jobId: job.id }));
  return (
    <li>
      <div class="row">
        <strong>{line(job.label, 80)}</strong>
        <span class={`state ${visible(job.status ?? "")}`}>{visible(job.status ?? "")}</span>
        <span class="dim">{visible(job.elapsed ?? "")}</span>
        <span class="grow" />
        <button type="button" onClick={() => void read()}>
          {output ? "Read again" : "Output"}
        </button>
        {job.status === "running" && (
          <button type="button" class="danger" onClick={() => void client.try("The job was not ended", "jobs/kill", { jobId: job.id })}>
            End
          </button>
        )}
      </div>
      {output && (
        <pre class="output" tabIndex={0} role="group" aria-label="Output">
          {visible((output.lines ?? []).map((one) => one.text).join("\n")) || "No output yet."}
        </pre>
      )}
    </li>
  );
}
