// Applies unified diffs to a text, forwards or backwards.

interface Hunk {
  from: number; // first line, from 0
  before: string[];
  after: string[];
}

export function parseHunks(diff: string): Hunk[] {
  const hunks: Hunk[] = [];
  let hunk: Hunk | undefined;
  let [oldLeft, newLeft] = [0, 0]; // lines of the hunk that are still to come
  for (const text of diff.split("\n")) {
    const header = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(text);
    if (header && oldLeft <= 0 && newLeft <= 0) {
      [oldLeft, newLeft] = [Number(header[2] ?? 1), Number(header[4] ?? 1)];
      hunk = { from: Number(header[1]) - (oldLeft === 0 ? 0 : 1), before: [], after: [] };
      hunks.push(hunk);
      continue;
    }
    if (!hunk || (oldLeft <= 0 && newLeft <= 0)) continue;
    const [sign, line] = [text[0] ?? " ", text.slice(1)];
    if (sign === "\\") continue;
    if (sign !== "+") [hunk.before[hunk.before.length], oldLeft] = [line, oldLeft - 1];
    if (sign !== "-") [hunk.after[hunk.after.length], newLeft] = [line, newLeft - 1];
  }
  return hunks;
}

const withoutCR = (line: string | undefined): string | undefined => line?.replace(/\r$/, "");

function matches(lines: readonly string[], at: number, wanted: readonly string[]): boolean {
  return at >= 0 && at + wanted.length <= lines.length && wanted.every((line, i) => withoutCR(line) === withoutCR(lines[at + i]));
}

/** Applies a diff to a text; undefined if it does not fit. */
function apply(text: string, hunks: readonly Hunk[]): string | undefined {
  const lines = text.split("\n");
  const out: string[] = [];
  let done = 0;
  for (const hunk of hunks) {
    const at = place(lines, hunk, done);
    if (at === undefined) return undefined;
    out.push(...lines.slice(done, at), ...hunk.after);
    done = at + hunk.before.length;
  }
  return [...out, ...lines.slice(done)].join("\n");
}

/** Where a hunk fits: at its own line number, else at the nearest line that is not before `lowest`. */
function place(lines: readonly string[], hunk: Hunk, lowest: number): number | undefined {
  for (let distance = 0; distance <= lines.length; distance++) {
    for (const at of [hunk.from + distance, hunk.from - distance]) {
      if (at >= lowest && matches(lines, at, hunk.before)) return at;
    }
    if (hunk.before.length === 0) return undefined; // it would fit anywhere
  }
  return undefined;
}

/** The file before and after a diff, given its current text. The change may be still to come or made already. */
export function sides(current: string, diff: string): { before: string; after: string; made: boolean } | undefined {
  const hunks = parseHunks(diff);
  if (hunks.length === 0) return undefined;
  // A hunk without lines on the side to be matched fits only an empty file.
  const fits = (empty: RegExp): boolean => !empty.test(diff) || current === "";
  const after = fits(/^@@ -0,0 /m) ? apply(current, hunks) : undefined;
  if (after !== undefined) return { before: current, after, made: false };
  const back = hunks.map((hunk, i) => ({ from: hunk.from + hunks.slice(0, i).reduce((n, one) => n + one.after.length - one.before.length, 0), before: hunk.after, after: hunk.before }));
  const before = fits(/^@@ -\S+ \+0,0 /m) ? apply(current, back) : undefined;
  return before === undefined ? undefined : { before, after: current, made: true };
}
