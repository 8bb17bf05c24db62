import { render } from "preact";
import { App } from "./app.tsx";
import { Client } from "./client.ts";
import { keepFocus } from "./focus.ts";
import { openPort } from "./ports.ts";
import { onNotification } from "./push.ts";
import { ClientContext, focusPrompt } from "./use.ts";

const client = new Client(openPort());
onNotification((chat) => client.select(chat));
const root = document.getElementById("app");
if (root) {
  render(
    <ClientContext.Provider value={client}>
      <App />
    </ClientContext.Provider>,
    root,
  );
  keepFocus();
  client.onFocus = focusPrompt;
}
