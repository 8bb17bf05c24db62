// The two ports: WebSocket to `eca web`, and messages to the extension of VS Code.
import type { Message, Port, Problem, Saved } from "./rpc.ts";

/** The storage key of the session, or of the device's token. */
export const sessionKey = "eca";

interface VsCodeApi {
  postMessage(message: unknown): void;
  getState(): unknown;
  setState(state: unknown): void;
}

declare global {
  function acquireVsCodeApi(): VsCodeApi;
}

abstract class BasePort implements Port {
  onMessage: Port["onMessage"] = () => undefined;
  onState: Port["onState"] = () => undefined;
  abstract send(message: Message): void;
  abstract retry(): void;
  abstract load(): Saved;
  abstract save(state: Saved): void;
}

/** The port of VS Code's view. The extension sends batches of messages, and host/state when the daemon starts or ends. */
class ViewPort extends BasePort {
  private readonly api = acquireVsCodeApi();

  constructor() {
    super();
    window.addEventListener("message", (event: MessageEvent<Message[]>) => {
      for (const one of event.data) this.received(one);
    });
    queueMicrotask(() => this.retry());
  }

  private received(message: Message): void {
    if (message.method === "host/state") {
      const { open, problem } = message.params as { open: boolean; problem?: Problem };
      this.onState(open, problem);
    } else {
      this.onMessage(message);
    }
  }

  send(message: Message): void {
    this.api.postMessage(message);
  }

  retry(): void {
    this.api.postMessage({ jsonrpc: "2.0", method: "host/ready" });
  }

  load(): Saved {
    return (this.api.getState() ?? {}) as Saved;
  }

  save(state: Saved): void {
    this.api.setState(state);
  }
}

/** The port of a browser. Its session is kept for this origin, so that a reload needs no link. */
class SocketPort extends BasePort {
  private socket: WebSocket | undefined;
  private tries = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    super();
    const chat = new URLSearchParams(location.hash.slice(1)).get("chat"); // of a notification
    if (chat) {
      this.save({ ...this.load(), chat });
      history.replaceState(null, "", location.pathname);
    }
    window.addEventListener("online", () => this.retry());
    queueMicrotask(() => void this.start());
  }

  private async start(): Promise<void> {
    const token = new URLSearchParams(location.hash.slice(1)).get("token");
    if (token) {
      history.replaceState(null, "", location.pathname); // the token is used up, so it need not stay in the history
      if ((await this.exchange(token)) === "refused" && !localStorage.getItem(sessionKey)) {
        return this.refused("This link was used already, or is of an earlier eca web.");
      }
    }
    if (localStorage.getItem(sessionKey)) this.connect();
    else this.refused("This page needs a link from eca web.");
  }

  /** Stores the session that the server returns for a token, or for a session that is still valid. */
  private async exchange(token: string): Promise<"given" | "refused" | "away"> {
    try {
      const response = await fetch("session", { method: "POST", body: JSON.stringify({ token }) });
      if (response.status === 403) return "refused";
      if (!response.ok) return "away";
      localStorage.setItem(sessionKey, ((await response.json()) as { session: string }).session);
      return "given";
    } catch {
      return "away";
    }
  }

  private refused(text: string): void {
    localStorage.removeItem(sessionKey);
    this.onState(false, { text, remedy: "Open the newest link that eca web has printed in its terminal, or start eca web again.", final: true });
  }

  private connect(): void {
    clearTimeout(this.timer);
    const socket = new WebSocket(new URL("socket", location.href.replace(/^http/, "ws").replace(/#.*/, "")), ["eca", `session.${localStorage.getItem(sessionKey) ?? ""}`]);
    this.socket = socket;
    socket.onopen = () => {
      this.tries = 0;
      this.onState(true);
    };
    socket.onmessage = (event: MessageEvent<string>) => this.onMessage(JSON.parse(event.data) as Message);
    socket.onclose = () => {
      if (this.socket === socket) void this.closed();
    };
  }

  private async closed(): Promise<void> {
    this.socket = undefined;
    const wait = Math.min(15_000, 500 * 2 ** this.tries++);
    this.onState(false, {
      text: "The connection to eca was lost. Trying again…",
      remedy: "If it does not come back, start eca web again in the project's folder and open the link that it prints.",
    });
    // A browser does not say why a WebSocket was refused: eca may have been restarted, or not know this session.
    if (this.tries > 1 && (await this.exchange(localStorage.getItem(sessionKey) ?? "")) === "refused") {
      return this.refused("This page belongs to an earlier eca web.");
    }
    this.timer = setTimeout(() => this.connect(), wait);
  }

  send(message: Message): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  retry(): void {
    if (!this.socket && localStorage.getItem(sessionKey)) this.connect();
  }

  load(): Saved {
    try {
      return JSON.parse(sessionStorage.getItem(sessionKey) ?? "{}") as Saved;
    } catch {
      return {};
    }
  }

  save(state: Saved): void {
    sessionStorage.setItem(sessionKey, JSON.stringify(state));
  }
}

export function openPort(): Port {
  return typeof acquireVsCodeApi === "function" ? new ViewPort() : new SocketPort();
}
