import type { VNode } from "preact";
import type { Details } from "./protocol.ts";
import { line } from "./text.ts";

const marks: Record<string, [string, string]> = { done: ["✓", "done"], "in-progress": ["▶", "in progress"], pending: ["·", "to do"] };

/** The chat's list of tasks. */
export function Tasks({ details }: { details: Details | undefined }): VNode | null {
  const tasks = details?.tasks ?? [];
  if (tasks.length === 0) return null;
  const done = details?.summary?.done ?? tasks.filter((task) => task.status === "done").length;
  return (
    <details class="tasks" open={done < tasks.length && tasks.length <= 6}>
      <summary>
        Tasks: {done} of {tasks.length} done {details?.activeSummary && <em>· {line(details.activeSummary, 80)}</em>}
      </summary>
      <ul>
        {tasks.map((task) => {
          const [mark, words] = marks[task.status] ?? ["·", task.status];
          return (
            <li key={task.id} class={task.status}>
              <span role="img" aria-label={words}>
                {mark}
              </span>{" "}
              {line(task.subject)} {task.isBlocked && <em>(blocked)</em>}
            </li>
          );
        })}
      </ul>
    </details>
  );
}
