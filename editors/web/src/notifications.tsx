// The switch for notifications, shown only if they are available.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isSubscribed, pushKey, subscribe, unsubscribe } from "./push.ts";
import { visible } from "./text.ts";

export function Notifications(): VNode | null {
  const [key, setKey] = useState<string | undefined>();
  const [on, setOn] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    void pushKey().then(async (found) => {
      if (!found) return;
      setOn(await isSubscribed(found));
      setKey(found);
    });
  }, []);
  if (!key) return null;
  const change = async (): Promise<void> => {
    setBusy(true);
    setProblem("");
    try {
      await (on ? unsubscribe() : subscribe(key));
      setOn(!on);
    } catch (error) {
      setProblem(`Notifications were not turned ${on ? "off" : "on"}: ${error instanceof Error ? error.message : String(error)}`);
    }
    setBusy(false);
  };
  return (
    <>
      <h2>Notifications</h2>
      <div class="row">
        <button type="button" aria-pressed={on} disabled={busy} onClick={() => void change()}>
          Notify this device{on ? ": on" : ""}
        </button>
        <span class="dim">when a chat waits for you, has finished, or has failed</span>
      </div>
      {problem && (
        <p class="bad plain" role="alert">
          {visible(problem)}
        </p>
      )}
    </>
  );
}
