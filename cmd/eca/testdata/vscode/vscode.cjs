// As much of VS Code as the extension eca-vscode asks for, without VS Code: settings, one
// text editor in memory, the windows that ask the user, and the view that holds the chat.
// What the user would be shown or asked is in `user`, which the test reads and answers.
const fs = require('node:fs');
const path = require('node:path');
const url = require('node:url');

class EventEmitter {
  listeners = new Set();
  event = (f) => { this.listeners.add(f); return { dispose: () => this.listeners.delete(f) }; };
  fire(x) { for (const f of this.listeners) f(x); }
  dispose() { this.listeners.clear(); }
}

class Uri {
  constructor(text) { this.text = text; }
  static file(p) { return new Uri(url.pathToFileURL(p).href); }
  static parse(text) { return new Uri(new URL(text).href); }
  static joinPath(base, ...parts) { return Uri.file(path.join(base.fsPath, ...parts)); }
  get scheme() { return new URL(this.text).protocol.slice(0, -1); }
  get fsPath() { return url.fileURLToPath(this.text); }
  toString() { return this.text; }
}

class Position {
  constructor(line, character) { this.line = line; this.character = character; }
}

class Range {
  constructor(a, b, c, d) {
    [this.start, this.end] = typeof a === 'number' ? [new Position(a, b), new Position(c, d)] : [a, b];
  }
  get isEmpty() { return this.start.line === this.end.line && this.start.character === this.end.character; }
}

class Document {
  isClosed = false;
  languageId = 'plaintext';
  constructor(file) { this.uri = Uri.file(file); this.text = fs.readFileSync(file, 'utf8'); }
  getText(range) { return range ? this.text.slice(this.offsetAt(range.start), this.offsetAt(range.end)) : this.text; }
  offsetAt(p) {
    let at = 0;
    for (let line = 0; line < p.line; line++) {
      const end = this.text.indexOf('\n', at);
      if (end < 0) return this.text.length;
      at = end + 1;
    }
    return Math.min(at + p.character, this.text.length);
  }
  positionAt(offset) {
    const before = this.text.slice(0, offset).split('\n');
    return new Position(before.length - 1, before.at(-1).length);
  }
  validatePosition(p) { return this.positionAt(this.offsetAt(p)); }
  lineAt(n) { const text = this.text.split('\n')[n]; return { text, range: new Range(n, 0, n, text.length) }; }
}

class TextEditor {
  decorations = [];
  constructor(document) { this.document = document; this.selection = new Range(0, 0, 0, 0); }
  async edit(build) {
    const edits = [];
    build({
      insert: (at, text) => edits.push([new Range(at, at), text]),
      replace: (range, text) => edits.push([range, text]),
    });
    for (const [range, text] of edits) {
      const d = this.document;
      d.text = d.text.slice(0, d.offsetAt(range.start)) + text + d.text.slice(d.offsetAt(range.end));
      changed.fire({ document: d, contentChanges: [{ range, text }] });
    }
    return true;
  }
  setDecorations(_type, ranges) { this.decorations = ranges; }
}

const changed = new EventEmitter();
const selected = new EventEmitter();
const configured = new EventEmitter();
const disposable = { dispose() {} };

// user is what the person in front of the editor sees and says: `answers` are taken in
// order by whatever asks next, `said` is all that was shown.
const user = { answers: [], said: [], log: '', status: undefined, opened: [], saved: undefined };
function say(kind) { return async (text) => { user.said.push(`${kind}: ${text}`); }; }
function ask(kind) {
  return async (what) => {
    user.said.push(`${kind}: ${JSON.stringify(what)}`);
    return user.answers.shift();
  };
}

const registered = new Map();
const settings = { 'serverPath': '', 'serverArgs': '', 'usageStringFormat': '{sessionTokens} / {contextLimit} ({sessionCost})' };
let views, lenses;

const vscode = {
  EventEmitter, Uri, Position, Range,
  CodeLens: class { constructor(range, command) { this.range = range; this.command = command; } },
  ThemeColor: class {},
  StatusBarAlignment: { Left: 1, Right: 2 },
  OverviewRulerLane: { Right: 4 },
  DiagnosticSeverity: { Error: 0, Warning: 1, Information: 2, Hint: 3 },
  ExtensionMode: { Production: 1, Development: 2, Test: 3 },
  env: { openExternal: async (u) => { user.opened.push(u.toString()); } },
  extensions: { getExtension: () => ({ extensionUri: vscode.extensionUri }) },
  commands: {
    registerCommand: (name, f) => { registered.set(name, f); return disposable; },
    executeCommand: async (name, ...args) => registered.get(name)?.(...args),
  },
  languages: {
    diagnostics: [],
    getDiagnostics: (u) => u
      ? vscode.languages.diagnostics.filter(([of]) => of.toString() === u.toString()).flatMap(([, d]) => d)
      : vscode.languages.diagnostics,
    registerCodeLensProvider: (_selector, provider) => { lenses = provider; return disposable; },
  },
  window: {
    activeTextEditor: undefined,
    visibleTextEditors: [],
    createStatusBarItem: () => (user.status = { text: '', show() {} }),
    createOutputChannel: () => ({ appendLine: (line) => { user.log += line + '\n'; }, show() {} }),
    createTextEditorDecorationType: () => disposable,
    registerWebviewViewProvider: (_id, provider) => { views = provider; return disposable; },
    onDidChangeTextEditorSelection: selected.event,
    showErrorMessage: say('error'),
    showWarningMessage: say('warning'),
    showInputBox: ask('input'),
    showQuickPick: ask('pick'),
    showSaveDialog: async () => user.saved && Uri.file(user.saved),
    showTextDocument: async (u) => { user.opened.push(u.fsPath); },
  },
  workspace: {
    workspaceFolders: [],
    textDocuments: [],
    fs: { writeFile: async (u, bytes) => fs.writeFileSync(u.fsPath, bytes) },
    getConfiguration: () => ({ ...settings, get: (name) => settings[name] }),
    onDidChangeConfiguration: configured.event,
    onDidChangeTextDocument: changed.event,
    openTextDocument: async (u) => new Document(u.fsPath),
  },

  // What follows is not VS Code's, but the test's.
  test: {
    user, settings,
    run: (name, ...args) => registered.get(name)(...args),
    view: () => views,
    lenses: (document) => lenses.provideCodeLenses(document),
    open(file, from, to) {
      const editor = new TextEditor(new Document(file));
      editor.selection = new Range(...from, ...to);
      vscode.window.activeTextEditor = editor;
      vscode.window.visibleTextEditors = [editor];
      vscode.workspace.textDocuments = [editor.document];
      selected.fire({ textEditor: editor });
      return editor;
    },
  },
};

module.exports = vscode;
