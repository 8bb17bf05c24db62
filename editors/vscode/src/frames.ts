// The daemon's framing: a Content-Length header, a blank line, JSON.

export interface Message {
  jsonrpc: "2.0";
  id?: string | number;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { code?: number; message?: string };
}

/** A header that announces a longer body is treated as broken. */
const maxBody = 512 << 20;
const maxHeader = 8 << 10;
const headerStart = "Content-Length:";

/**
 * Splits what the daemon writes into messages. Other output is reported and skipped up
 * to the next header, so that one stray line of output does not end the session.
 */
export class FrameReader {
  private chunks: Buffer[] = [];
  private size = 0;
  private body = -1; // length of the body to be read next; -1: a header comes next

  constructor(
    private readonly onMessage: (message: Message) => void,
    private readonly onProblem: (problem: string) => void,
  ) {}

  push(chunk: Buffer): void {
    this.chunks.push(chunk);
    this.size += chunk.length;
    while (this.body >= 0 ? this.readBody() : this.readHeader()) {
      // Each call reads one header or one body.
    }
  }

  private join(): Buffer {
    const all = this.chunks.length === 1 ? (this.chunks[0] as Buffer) : Buffer.concat(this.chunks);
    this.chunks = [all];
    return all;
  }

  private keep(rest: Buffer): void {
    this.chunks = rest.length > 0 ? [rest] : [];
    this.size = rest.length;
  }

  private readHeader(): boolean {
    if (this.size === 0) return false;
    const all = this.join();
    const end = all.indexOf("\r\n\r\n");
    if (end < 0 && all.length <= maxHeader) return false;
    const header = all.subarray(0, end < 0 ? maxHeader : end).toString("latin1");
    const length = /(?:^|\r\n)Content-Length: *(\d+)\s*(?:\r\n|$)/i.exec(header);
    const startsRight = header.slice(0, headerStart.length).toLowerCase() === headerStart.toLowerCase();
    if (end >= 0 && length && startsRight && Number(length[1]) <= maxBody) {
      this.body = Number(length[1]);
      this.keep(all.subarray(end + 4));
      return true;
    }
    this.onProblem(`sent what is not a message: ${JSON.stringify(header.slice(0, 200))}`);
    const next = all.indexOf(headerStart, 1);
    if (next > 0) {
      this.keep(all.subarray(next));
      return true;
    }
    this.keep(all.subarray(Math.max(0, all.length - headerStart.length + 1))); // the next header may have begun
    return false;
  }

  private readBody(): boolean {
    if (this.size < this.body) return false;
    const all = this.join();
    const text = all.subarray(0, this.body).toString("utf8");
    this.keep(all.subarray(this.body));
    this.body = -1;
    let message: unknown;
    try {
      message = JSON.parse(text);
    } catch (error) {
      this.onProblem(`sent invalid JSON (${String(error)}): ${text.slice(0, 200)}`);
      return true;
    }
    if (typeof message !== "object" || message === null || Array.isArray(message)) {
      this.onProblem(`sent a message that is not an object: ${text.slice(0, 200)}`);
      return true;
    }
    try {
      this.onMessage(message as Message);
    } catch (error) {
      this.onProblem(`sent a message that cannot be used (${String(error)}): ${text.slice(0, 200)}`);
    }
    return true;
  }
}

export function encode(message: Message): Buffer {
  const body = Buffer.from(JSON.stringify(message), "utf8");
  return Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`, "latin1"), body]);
}
