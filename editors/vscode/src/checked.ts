// Finds out which files an extension may check. VS Code does not say whether a language server
// exists, and the daemon should not wait after edits of files that nothing checks.

/** An extension and the parts of its manifest that say which languages it serves. */
export interface Declared {
  isActive: boolean;
  packageJSON: {
    main?: unknown;
    browser?: unknown;
    activationEvents?: unknown;
    contributes?: { languages?: { id?: unknown; extensions?: unknown; filenames?: unknown }[] };
  };
}

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** The name of a file, from its path. */
const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1).toLowerCase();

/** The kind of a file: its name from the last dot on, or its whole name. */
export function kindOf(path: string): string {
  const name = nameOf(path);
  return name.slice(Math.max(0, name.lastIndexOf(".")));
}

/**
 * Whether a running extension declares the language of a file: its own code may check it. An
 * extension that has not started reports nothing, and an edit on the disk does not start it. One
 * that starts for all languages does not count until it reports something.
 */
export function isDeclared(path: string, extensions: readonly Declared[], open?: string): boolean {
  const name = nameOf(path);
  const named = (value: unknown, matches: (text: string) => boolean): boolean =>
    list(value).some((one) => typeof one === "string" && matches(one.toLowerCase()));
  const languages = new Set<unknown>(open === undefined ? [] : [open]);
  for (const { packageJSON } of open === undefined ? extensions : []) {
    for (const language of list(packageJSON.contributes?.languages) as { id?: unknown; extensions?: unknown; filenames?: unknown }[]) {
      if (named(language.extensions, (end) => name.endsWith(end)) || named(language.filenames, (whole) => name === whole)) languages.add(language.id);
    }
  }
  return extensions.some(({ isActive, packageJSON }) => {
    if (!isActive || (packageJSON.main ?? packageJSON.browser) === undefined) return false;
    const contributed = list(packageJSON.contributes?.languages) as { id?: unknown }[];
    return contributed.some((language) => languages.has(language.id))
      || list(packageJSON.activationEvents).some((event) => typeof event === "string" && event.startsWith("onLanguage:") && languages.has(event.slice("onLanguage:".length)));
  });
}
