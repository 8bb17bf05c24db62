// One daemon process: starts it, exchanges messages with it, and reports its exit.
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { encode, FrameReader, type Message } from "./frames";

export interface DaemonHandlers {
  /** Requests and notifications of the daemon, and answers to requests of pages. */
  onMessage(message: Message): void;
  onLog(text: string): void;
  onProblem(problem: string): void;
  /** The process has ended; cause is undefined if it was asked to stop. */
  onExit(cause: string | undefined): void;
  /** True: it has sent nothing for a while although requests wait for answers. False: it sends again. */
  onSilence(silent: boolean): void;
}

export class DaemonError extends Error {
  constructor(
    message: string,
    readonly code?: number,
  ) {
    super(message);
  }
}

interface Waiting {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/** How long requests may wait while the daemon sends nothing at all. */
const silenceLimit = 30_000;
/** How long it may take to exit when it is asked to. */
const exitLimit = 3_000;
/** Prefix of the ids of the extension's own requests; those of pages have another one. */
const ownPrefix = "host/";

export class Daemon {
  private readonly child: ChildProcessWithoutNullStreams;
  private readonly waiting = new Map<string, Waiting>();
  private readonly open = new Set<string | number>(); // ids of unanswered requests, also those of pages
  private lastId = 0;
  private lastOutputAt = Date.now();
  private silent = false;
  private ended = false;
  private stopRequested = false;
  private lastStderr = "";
  private readonly timer: NodeJS.Timeout;
  private readonly exited: Promise<void>;

  constructor(
    program: string,
    args: readonly string[],
    cwd: string,
    private readonly handlers: DaemonHandlers,
  ) {
    this.child = spawn(program, args, { cwd, stdio: "pipe", windowsHide: true });
    const frames = new FrameReader((message) => this.received(message), (problem) => handlers.onProblem(problem));
    this.child.stdout.on("data", (chunk: Buffer) => {
      this.lastOutputAt = Date.now();
      frames.push(chunk);
    });
    this.child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.lastStderr = (this.lastStderr + text).slice(-2000);
      handlers.onLog(text);
    });
    this.child.stdin.on("error", (error) => handlers.onLog(`cannot write to the daemon: ${error.message}\n`));
    this.exited = new Promise((resolve) => {
      this.child.once("error", (error) => {
        this.end(`could not be started: ${error.message}`);
        resolve();
      });
      this.child.once("close", (code, signal) => {
        this.end(signal ? `was killed (${signal})` : `ended with code ${String(code)}`);
        resolve();
      });
    });
    this.timer = setInterval(() => this.checkSilence(), 2_000);
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  private end(cause: string): void {
    if (this.ended) return;
    this.ended = true;
    clearInterval(this.timer);
    const lastLine = this.lastStderr.trim().split("\n").at(-1) ?? "";
    const why = lastLine ? `${cause}; its last message: ${lastLine}` : cause;
    for (const one of this.waiting.values()) one.reject(new DaemonError(`eca ${why}`));
    this.waiting.clear();
    this.handlers.onExit(this.stopRequested ? undefined : why);
  }

  private received(message: Message): void {
    const { id } = message;
    if (message.method === undefined && id !== undefined) {
      this.open.delete(id);
      if (typeof id === "string" && id.startsWith(ownPrefix)) {
        const one = this.waiting.get(id);
        this.waiting.delete(id);
        if (message.error) one?.reject(new DaemonError(message.error.message ?? "it gave no reason", message.error.code));
        else one?.resolve(message.result);
        return;
      }
    }
    this.handlers.onMessage(message);
  }

  send(message: Message): void {
    if (this.ended) return;
    if (message.method !== undefined && message.id !== undefined) {
      if (this.open.size === 0) this.lastOutputAt = Date.now();
      this.open.add(message.id);
    }
    this.child.stdin.write(encode(message));
  }

  notify(method: string, params: unknown): void {
    this.send({ jsonrpc: "2.0", method, params });
  }

  /** Sends a request of the extension's own. Aborting the signal cancels it. */
  request<R>(method: string, params: unknown, signal?: AbortSignal): Promise<R> {
    if (this.ended) return Promise.reject(new DaemonError("eca is not running"));
    const id = ownPrefix + String(++this.lastId);
    const answer = new Promise<unknown>((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    this.send({ jsonrpc: "2.0", id, method, params });
    signal?.addEventListener("abort", () => {
      if (this.waiting.has(id)) this.notify("$/cancelRequest", { id });
    }, { once: true });
    return answer as Promise<R>;
  }

  private checkSilence(): void {
    const silent = this.open.size > 0 && Date.now() - this.lastOutputAt > silenceLimit;
    if (silent === this.silent) return;
    this.silent = silent;
    this.handlers.onSilence(silent);
  }

  /** Asks it to exit, and kills it if it does not within the limit. */
  async stop(limit = exitLimit): Promise<void> {
    if (this.ended) return;
    this.stopRequested = true;
    this.request("shutdown", null).catch(() => undefined); // end rejects it if no answer comes
    this.notify("exit", null);
    this.child.stdin.end();
    const timer = setTimeout(() => this.child.kill("SIGKILL"), limit);
    await this.exited;
    clearTimeout(timer);
  }

  kill(): void {
    this.stopRequested = true;
    this.child.kill("SIGKILL");
  }
}
