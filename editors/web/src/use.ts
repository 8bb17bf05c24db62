import { createContext } from "preact";
import { useContext, useEffect, useReducer } from "preact/hooks";
import type { Client } from "./client.ts";

export const ClientContext = createContext<Client | undefined>(undefined);

export function useClient(): Client {
  const client = useContext(ClientContext);
  if (!client) throw new Error("there is no client above this component");
  return client;
}

/** Gives the focus to the prompt, when the element that has it goes away. */
export function focusPrompt(): void {
  document.getElementById("prompt")?.focus();
}

/** Focuses an element when it appears: as its `ref`, since a function of its own for each rendering would focus it each time. */
export function takeFocus(element: HTMLElement | null): void {
  element?.focus();
}

/** The client, and another rendering with each change of what it knows. */
export function useChanges(): Client {
  const client = useClient();
  const [, again] = useReducer((n: number) => n + 1, 0);
  useEffect(() => client.subscribe(() => again(undefined as never)), [client]);
  return client;
}
