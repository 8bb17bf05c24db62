// Makes texts of models, tools and files safe to show.

// Control characters, and characters that reorder or hide text. Joiners are allowed, because words
// and emoji contain them.
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** Escapes characters that hide or reorder text. It accepts any value, because messages can have another shape than expected. */
export function visible(text: unknown): string {
  return pretty(text).replaceAll("\r\n", "\n").replace(hidden, (c) => {
    const code = c.codePointAt(0) ?? 0;
    return code < 32 ? String.fromCodePoint(0x2400 + code) : `\\u${code < 0x10000 ? code.toString(16).padStart(4, "0") : `{${code.toString(16)}}`}`;
  });
}

/** One line of at most `width` characters. */
export function line(text: unknown, width = 200): string {
  const one = visible(text ?? "").replace(/\s+/g, " ").trim();
  return one.length > width ? `${one.slice(0, width - 1)}…` : one;
}

/** The address of a link that may be followed; undefined for all but http and https. */
export function safeLink(href: string): string | undefined {
  try {
    const url = new URL(href);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : undefined;
  } catch {
    return undefined;
  }
}

export function pretty(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
}

export function tokens(n: number): string {
  if (n < 1000) return String(n);
  return n < 1_000_000 ? `${(n / 1000).toFixed(n < 10_000 ? 1 : 0)}k` : `${(n / 1_000_000).toFixed(1)}M`;
}

export function seconds(ms: number | undefined): string {
  if (ms === undefined || ms < 100) return "";
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** How long ago, as short text for a list. */
export function ago(time: number | undefined, now: number): string {
  if (!time) return "";
  const minutes = Math.floor((now - time) / 60_000);
  if (minutes < 1) return "now";
  if (minutes < 60) return `${minutes} min`;
  return minutes < 60 * 24 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 60 / 24)} d`;
}

/** A path relative to the workspace folder that contains it. */
export function shortPath(path: string, folders: readonly string[]): string {
  for (const folder of folders) {
    if (path === folder) return ".";
    if (path.startsWith(`${folder}/`) || path.startsWith(`${folder}\\`)) return path.slice(folder.length + 1);
  }
  return path;
}

const rejections: Record<string, string> = {
  userChoiceDeny: "You rejected it.",
  userConfigDeny: "The configuration does not allow it.",
  userPromptStop: "You stopped the turn.",
  userStop: "The turn ended before it ran.",
  hookRejected: "A hook rejected it.",
};

/** The text for each code of a rejected call. */
export function rejection(reason: string): string {
  return rejections[reason] ?? visible(reason);
}
