// The chat's model, agent and variant, auto-approval, and what it has cost.
import type { VNode } from "preact";
import { line, tokens } from "./text.ts";
import { useChanges } from "./use.ts";

function Choice({ label, value, options, choose }: { label: string; value: string; options: readonly string[]; choose: (value: string) => void }): VNode {
  const all = options.includes(value) || !value ? options : [value, ...options];
  return (
    <label class="choice">
      <span class="hidden">{label}</span>
      <select value={value} onChange={(event) => choose(event.currentTarget.value)} title={label}>
        {!value && <option value="">{label}</option>}
        {all.map((one) => (
          <option key={one} value={one}>
            {one === "-" ? "no variant" : line(one, 60)}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Settings(): VNode {
  const client = useChanges();
  const { state, chat } = client;
  const model = client.setting("model") ?? "";
  const variants = client.setting("variants") ?? [];
  const trust = client.setting("trust") ?? false;
  return (
    <div class="settings">
      <Choice label="Model" value={model} options={state.models} choose={(one) => client.selectModel(one)} />
      <Choice label="Agent" value={client.setting("agent") ?? ""} options={state.agents} choose={(one) => client.selectAgent(one)} />
      {variants.length > 0 && (
        <Choice label="Variant" value={client.setting("variant") ?? "-"} options={["-", ...variants]} choose={(one) => client.selectModel(model, one === "-" ? undefined : one)} />
      )}
      <button type="button" class={`quiet toggle${trust ? " on" : ""}`} aria-pressed={trust} title="Calls that would ask run without a question" onClick={() => client.setTrust(!trust)}>
        Auto-approve{trust ? ": on" : ""}
      </button>
      <span class="grow" />
      {chat.usage && <UsageView tokens={chat.usage.tokens} limit={chat.usage.limit} cost={chat.usage.cost} last={chat.usage.lastCost} />}
    </div>
  );
}

function UsageView({ tokens: used, limit, cost, last }: { tokens: number; limit?: number; cost?: string; last?: string }): VNode {
  const share = limit ? Math.min(1, used / limit) : 0;
  return (
    <span class="usage" title={[limit && `${Math.round(share * 100)} % of the context`, last && `last answer $${line(last, 20)}`].filter(Boolean).join(", ")}>
      {limit ? <meter min={0} max={1} high={0.8} value={share} aria-label="Context used" /> : null}
      <span>
        {tokens(used)}
        {limit ? ` / ${tokens(limit)}` : ""}
        {cost ? ` · $${line(cost, 20)}` : ""}
      </span>
    </span>
  );
}
