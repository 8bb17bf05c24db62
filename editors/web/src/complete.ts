// Completion in the prompt: finds the word to complete, and its completions.
import type { Command, ContextItem } from "./protocol.ts";
import { shortPath, visible } from "./text.ts";

export interface Word {
  sign: "@" | "#" | "/";
  query: string;
  at: number; // position of the sign
}

export interface Offer {
  label: string; // what is inserted
  about: string;
  context?: ContextItem;
}

/** The word before the cursor that begins with one of the signs. A command is the first word. */
export function wordBefore(text: string, cursor: number): Word | undefined {
  const before = text.slice(0, cursor);
  const command = /^\/(\S*)$/.exec(before);
  if (command) return { sign: "/", query: command[1] ?? "", at: 0 };
  const found = /(?:^|\s)([@#])([^\s@#]*)$/.exec(before);
  if (!found) return undefined;
  const query = found[2] ?? "";
  return { sign: found[1] as "@" | "#", query, at: cursor - query.length - 1 };
}

const most = 50;

function label(sign: string, context: ContextItem, folders: readonly string[]): string {
  if (context.path !== undefined) return sign + visible(shortPath(context.path, folders));
  if (context.uri !== undefined) return `${sign}${visible(context.server ?? "")}:${visible(context.name ?? context.uri)}`;
  return sign + visible(context.type);
}

export function offers(word: Word, found: (ContextItem | Command)[], folders: readonly string[]): Offer[] {
  if (word.sign !== "/") {
    return (found as ContextItem[]).slice(0, most).map((context) => ({
      label: label(word.sign, context, folders), about: context.description ?? context.type, ...(word.sign === "@" ? { context } : {}),
    }));
  }
  const commands = found as Command[];
  const first = commands.filter((one) => one.name.startsWith(word.query));
  const others = commands.filter((one) => !one.name.startsWith(word.query));
  return [...first, ...others].slice(0, most).map((one) => ({
    label: `/${one.name}`, about: [...(one.arguments ?? []).map((argument) => `<${argument.name}>`), one.description ?? ""].join(" "),
  }));
}

/** The text with the word replaced by the completion, and the new cursor position. */
export function applyOffer(text: string, cursor: number, word: Word, offer: Offer): { text: string; cursor: number } {
  const rest = text.slice(cursor);
  const space = rest.startsWith(" ") ? "" : " ";
  const before = text.slice(0, word.at) + offer.label + space;
  return { text: before + rest, cursor: before.length };
}
