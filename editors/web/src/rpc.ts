// JSON-RPC over a port: a WebSocket in a browser, window messages in VS Code.

export interface Message {
  jsonrpc: "2.0";
  id?: string | number;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { code?: number; message?: string };
}

/** A port carries messages. Messages sent while it is closed are lost. */
export interface Port {
  send(message: Message): void;
  onMessage: (message: Message) => void;
  /** Called when the connection opens or closes; problem is shown to the user. */
  onState: (open: boolean, problem?: Problem) => void;
  /** Tries to connect again now. */
  retry(): void;
  load(): Saved;
  save(state: Saved): void;
}

export interface Problem {
  text: string;
  remedy: string;
  final?: boolean;
}

/** The state that survives a reload of the page. */
export interface Saved {
  chat?: string;
  draft?: string;
}

export class RpcError extends Error {}

type Waiting = { resolve: (result: never) => void; reject: (error: Error) => void };

export class Rpc {
  private readonly waiting = new Map<number, Waiting>();
  private last = 0;
  open = false;
  /** Requests and notifications from the other end. */
  onCall: (method: string, params: unknown, id?: string | number) => void = () => undefined;

  constructor(readonly port: Port) {
    port.onMessage = (message) => this.receive(message);
  }

  /** Sets whether the connection is open. Requests without an answer fail. */
  setOpen(open: boolean): void {
    this.open = open;
    if (open) return;
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const one of waiting) one.reject(new RpcError("the connection was lost"));
  }

  private receive(message: Message): void {
    if (message.method !== undefined) {
      this.onCall(message.method, message.params, message.id);
      return;
    }
    const one = this.waiting.get(Number(message.id));
    if (!one) return;
    this.waiting.delete(Number(message.id));
    if (message.error) one.reject(new RpcError(message.error.message ?? "the daemon gave no reason"));
    else one.resolve(message.result as never);
  }

  request<R>(method: string, params: unknown): Promise<R> {
    if (!this.open) return Promise.reject(new RpcError("there is no connection"));
    const id = ++this.last;
    const answer = new Promise<R>((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    this.port.send({ jsonrpc: "2.0", id, method, params });
    return answer;
  }

  notify(method: string, params: unknown): void {
    if (this.open) this.port.send({ jsonrpc: "2.0", method, params });
  }

  answer(id: string | number, result: unknown): void {
    if (this.open) this.port.send({ jsonrpc: "2.0", id, result });
  }

  /** Answers a request with "method not found", so that the daemon does not wait. */
  refuse(id: string | number, method: string): void {
    if (this.open) this.port.send({ jsonrpc: "2.0", id, error: { code: -32601, message: `the page does not know ${method}` } });
  }
}
