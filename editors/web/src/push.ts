// Notifications by the browser's push service. They need a page of the remote server in a secure context,
// and remote.push turned on.
import { sessionKey } from "./ports.ts";

const path = "api/v1/push";

function ask(method: string, body?: unknown): Promise<Response> {
  return fetch(path, { method, headers: { Authorization: `Bearer ${localStorage.getItem(sessionKey) ?? ""}` }, ...(body ? { body: JSON.stringify(body) } : {}) });
}

/** The server's key, or undefined if notifications are not available. */
export async function pushKey(): Promise<string | undefined> {
  if ("acquireVsCodeApi" in window) return undefined; // no server serves the page of VS Code
  if (!("serviceWorker" in navigator) || !("PushManager" in window) || !("Notification" in window)) return undefined;
  try {
    const response = await ask("GET");
    return response.ok ? ((await response.json()) as { key: string }).key : undefined;
  } catch {
    return undefined;
  }
}

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL: () => string }): { createScriptURL(text: string): unknown };
}

let script: unknown; // the URL of the service worker; its policy can be created once only

/** Registers the service worker. The page's policy allows this one script. */
async function register(): Promise<ServiceWorkerRegistration> {
  const { trustedTypes } = window as unknown as { trustedTypes?: TrustedTypes };
  script ??= trustedTypes ? trustedTypes.createPolicy("eca-worker", { createScriptURL: () => "sw.js" }).createScriptURL("") : "sw.js";
  await navigator.serviceWorker.register(script as string);
  return navigator.serviceWorker.ready;
}

/** The browser's subscription, if the user has turned notifications on in this page. */
async function current(): Promise<PushSubscription | null> {
  const registration = await navigator.serviceWorker.getRegistration();
  return (await registration?.pushManager.getSubscription()) ?? null;
}

/** Whether this browser is subscribed with a key. Subscribes again at the server, which may have lost it. */
export async function isSubscribed(key: string): Promise<boolean> {
  const subscription = await current();
  const used = subscription?.options.applicationServerKey;
  if (!used || Notification.permission !== "granted") return false;
  const text = btoa(String.fromCharCode(...new Uint8Array(used))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return text === key && (await ask("POST", subscription.toJSON())).ok;
}

/** Subscribes this browser, and throws an error that says why it cannot. */
export async function subscribe(key: string): Promise<void> {
  if ((await Notification.requestPermission()) !== "granted") throw new Error("The browser does not let this page show notifications. Allow them in its settings for this site.");
  await (await current())?.unsubscribe(); // it may be for another key
  const { pushManager } = await register();
  const subscription = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  const response = await ask("POST", subscription.toJSON());
  if (response.ok) return;
  await subscription.unsubscribe();
  throw new Error(((await response.json()) as { error: { message: string } }).error.message);
}

export async function unsubscribe(): Promise<void> {
  const subscription = await current();
  if (!subscription) return;
  await ask("DELETE", { endpoint: subscription.endpoint });
  await subscription.unsubscribe();
}

/** Calls back when the user chose a notification about a chat. */
export function onNotification(chosen: (chat: string) => void): void {
  if (!("serviceWorker" in navigator)) return;
  navigator.serviceWorker.addEventListener("message", (event: MessageEvent<{ chat?: string }>) => {
    if (event.data.chat) chosen(event.data.chat);
  });
}
