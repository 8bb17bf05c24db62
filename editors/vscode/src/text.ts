// Makes texts of the daemon and of models safe to show in VS Code's own widgets.

// Control characters, and characters that reorder or hide text.
const hidden = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** One line of at most `width` characters, without characters that hide or reorder text. It accepts any value, because messages can have another shape than expected. */
export function line(text: unknown, width = 300): string {
  const one = (typeof text === "string" ? text : text === undefined ? "" : JSON.stringify(text)).replace(/\s+/g, " ").replace(hidden, "·").trim();
  return one.length > width ? `${one.slice(0, width - 1)}…` : one;
}

export function reason(error: unknown): string {
  return line(error instanceof Error ? error.message : String(error));
}

/** Compares the numbers of two versions: negative if a is older than b. */
export function compareVersions(a: string, b: string): number {
  const numbers = (version: string): number[] => version.replace(/[-+].*/, "").split(".").map(Number);
  const [x, y] = [numbers(a), numbers(b)];
  for (let i = 0; i < 3; i++) {
    const difference = (x[i] ?? 0) - (y[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
