// The service worker: shows notifications while the page is closed or hidden. A notification has no
// text of a chat or a command, since it may be seen on a locked screen.
/// <reference lib="webworker" />
export {};
declare const self: ServiceWorkerGlobalScope;

interface Pushed {
  kind: string;
  chat: string;
  folder: string;
}

const texts: Record<string, string> = {
  approval: "A tool call waits for your approval",
  question: "A question waits for your answer",
  finished: "eca has finished",
  failed: "eca could not finish",
};

async function show(event: PushEvent): Promise<void> {
  const { kind, chat, folder } = event.data?.json() as Pushed;
  const pages = await self.clients.matchAll({ type: "window" });
  if (pages.some((page) => page.visibilityState === "visible")) return;
  await self.registration.showNotification(folder ? `eca: ${folder}` : "eca", { body: texts[kind] ?? "", tag: chat, icon: "icon.svg", data: chat });
}

/** Shows the chat in an open page, or opens a page. */
async function open(chat: string): Promise<void> {
  const page = (await self.clients.matchAll({ type: "window" }))[0];
  if (!page) {
    await self.clients.openWindow(`./#chat=${encodeURIComponent(chat)}`);
    return;
  }
  page.postMessage({ chat });
  await page.focus();
}

self.addEventListener("install", () => void self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("push", (event) => event.waitUntil(show(event)));
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data as string));
});
