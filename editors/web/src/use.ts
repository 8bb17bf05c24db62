import { createContext } from "preact";
import { useContext, useEffect, useReducer } from "preact/hooks";
import type { Client } from "./client.ts";

export const ClientContext = createContext<Client | undefined>(undefined);

export function useClient(): Client {
  const client = useContext(ClientContext);
  if (!client) throw new Error("there is no client above this component");
  return client;
}

/** Focuses the prompt when the focused element is removed. */
export function focusPrompt(): void {
  document.getElementById("prompt")?.focus();
}

/** A `ref` that focuses an element when it appears. It is one function for all renderings: a new one each time would focus each time. */
export function takeFocus(element: HTMLElement | null): void {
  element?.focus();
}

/** Returns the client, and renders the component again when the client's state changes. */
export function useChanges(): Client {
  const client = useClient();
  const [, again] = useReducer((n: number) => n + 1, 0);
  useEffect(() => client.subscribe(() => again(undefined as never)), [client]);
  return client;
}
