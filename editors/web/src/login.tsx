// One provider: its state, and logging in to it.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { LoginAction, Provider } from "./protocol.ts";
import { line, safeLink, visible } from "./text.ts";
import { takeFocus, useChanges } from "./use.ts";

export function Login({ provider }: { provider: Provider }): VNode {
  const client = useChanges();
  const [next, setNext] = useState<LoginAction | undefined>();
  const status = provider.auth?.status ?? "";
  const ask = async (method: string, params: object): Promise<void> =>
    setNext(await client.try<LoginAction>("The login failed", method, { provider: provider.id, ...params }));
  const input = (event: Event): void => {
    event.preventDefault();
    const data = Object.fromEntries(new FormData(event.currentTarget as HTMLFormElement).entries());
    void ask("providers/loginInput", { data });
  };
  return (
    <li>
      <div class="row">
        <strong>{line(provider.label ?? provider.id, 60)}</strong>
        <span class={`state ${visible(status)}`}>{visible(status)}</span>
        {provider.auth?.envVar && <span class="dim">{visible(provider.auth.envVar)}</span>}
        <span class="grow" />
        {provider.login && !next && (
          <button type="button" onClick={() => void ask("providers/login", {})} aria-label={`Log in to ${line(provider.label ?? provider.id, 60)}`}>
            Log in
          </button>
        )}
        {provider.auth?.source === "login" && (
          <button type="button" onClick={() => void client.try("The logout failed", "providers/logout", { provider: provider.id })}>
            Log out
          </button>
        )}
        {next && next.action !== "done" && (
          <button type="button" class="quiet" onClick={() => setNext(undefined)}>
            Cancel
          </button>
        )}
      </div>
      {next?.message && <p>{visible(next.message)}</p>}
      {next?.action === "choose-method" && (
        <div class="row">
          {next.methods?.map((method, i) => (
            <button type="button" key={method.key} ref={i === 0 ? takeFocus : null} onClick={() => void ask("providers/login", { method: method.key })}>
              {line(method.label, 60)}
            </button>
          ))}
        </div>
      )}
      {next?.url && <Address url={next.url} />}
      {next?.code && (
        <p>
          Enter the code <code>{visible(next.code)}</code> there.
        </p>
      )}
      {next?.fields && next.action !== "done" && (
        <form class="row" onSubmit={input}>
          {next.fields.map((field, i) => (
            <label key={field.key}>
              {line(field.label, 60)}{" "}
              {field.type === "secret" ? <input name={field.key} type="password" autocomplete="off" required ref={i === 0 ? takeFocus : null} /> : <input name={field.key} autocomplete="off" required ref={i === 0 ? takeFocus : null} />}
            </label>
          ))}
          <button type="submit" class="primary">
            Log in
          </button>
        </form>
      )}
      {next?.action === "done" && <p>Logged in.</p>}
    </li>
  );
}

function Address({ url }: { url: string }): VNode {
  const href = safeLink(url);
  return <p>{href ? <a href={href} target="_blank" rel="noopener noreferrer">Open the provider's page</a> : visible(url)}</p>;
}
