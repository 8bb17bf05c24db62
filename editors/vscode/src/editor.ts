// Answers the daemon's requests for diagnostics, definitions and references.
import * as vscode from "vscode";
import { isDeclared, kindOf } from "./checked";
import { reason } from "./text";

const navigationLimit = 20_000;
/** How long to wait for an extension that starts because a file of its language was opened. */
const extensionStartLimit = 5_000;
/** How many diagnostics are sent at most, the most severe first. */
const maxDiagnostics = 2_000;

interface Params {
  uri?: string;
  position?: { line?: number; character?: number };
  includeDeclaration?: boolean;
}

const methods: Record<string, (params: Params) => object | Promise<object>> = {
  "editor/getDiagnostics": diagnostics,
  "editor/getDefinition": (params) => navigate(params, definitions),
  "editor/getReferences": (params) => navigate(params, (uri, at) => references(uri, at, params.includeDeclaration !== false)),
};

export function isEditorRequest(method: string): boolean {
  return Object.hasOwn(methods, method);
}

export async function answerEditor(method: string, params: unknown): Promise<object> {
  const answer = methods[method];
  if (!answer) throw new Error(`VS Code does not know ${method}`);
  return answer((params ?? {}));
}

/** The kinds of files for which some extension has reported diagnostics in this session, even an empty list. */
const reported = new Set<string>();

/** Records the kinds of files for which diagnostics are reported. */
export function watchReports(): vscode.Disposable {
  const note = (uris: readonly vscode.Uri[]): void => { for (const uri of uris) reported.add(kindOf(uri.path)); };
  note(vscode.languages.getDiagnostics().map(([uri]) => uri));
  return vscode.languages.onDidChangeDiagnostics((event) => { note(event.uris); });
}

function isChecked(uri: vscode.Uri): boolean {
  if (reported.has(kindOf(uri.path))) return true;
  const open = vscode.workspace.textDocuments.find((one) => one.uri.toString() === uri.toString());
  return isDeclared(uri.path, vscode.extensions.all, open?.languageId);
}

const severities = ["error", "warning", "information", "hint"];

function diagnostics({ uri }: Params): object {
  if (uri && !isChecked(vscode.Uri.parse(uri))) return { status: "no-server", message: "nothing in VS Code checks this file" };
  const all: readonly [vscode.Uri, readonly vscode.Diagnostic[]][] = uri
    ? [[vscode.Uri.parse(uri), vscode.languages.getDiagnostics(vscode.Uri.parse(uri))]]
    : vscode.languages.getDiagnostics();
  const found = all.flatMap(([file, list]) => list.map((one) => ({
    uri: file.toString(),
    severity: severities[one.severity],
    source: one.source ?? null,
    code: typeof one.code === "object" ? one.code.value : (one.code ?? null),
    message: one.message,
    range: one.range,
    order: one.severity,
  })));
  found.sort((a, b) => a.order - b.order);
  return { diagnostics: found.slice(0, maxDiagnostics).map(({ range, ...rest }) => ({ ...rest, range: { start: plain(range.start), end: plain(range.end) } })) };
}

function plain({ line, character }: vscode.Position): { line: number; character: number } {
  return { line, character };
}

type Place = vscode.Location | vscode.LocationLink;

function location(place: Place): { uri: string; range: object } {
  const [uri, range] = "targetUri" in place ? [place.targetUri, place.targetSelectionRange ?? place.targetRange] : [place.uri, place.range];
  const fromOne = (position: vscode.Position): object => ({ line: position.line + 1, character: position.character + 1 });
  return { uri: uri.toString(), range: { start: fromOne(range.start), end: fromOne(range.end) } };
}

async function navigate({ uri, position }: Params, find: (uri: vscode.Uri, at: vscode.Position) => Promise<Place[]>): Promise<object> {
  if (!uri || !position) return { status: "error", message: "the request has no uri or no position" };
  const limit = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error("the language's extension did not answer in time")), navigationLimit).unref();
  });
  try {
    const wasOpen = vscode.workspace.textDocuments.some((one) => one.uri.toString() === vscode.Uri.parse(uri).toString());
    const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(uri)); // starts the language's extension
    const at = document.validatePosition(new vscode.Position(Math.max(0, (position.line ?? 1) - 1), Math.max(0, (position.character ?? 1) - 1)));
    let found = await Promise.race([find(document.uri, at), limit]);
    // VS Code does not say whether the language's extension has started.
    for (const end = Date.now() + extensionStartLimit; !wasOpen && found.length === 0 && Date.now() < end; ) {
      await new Promise((resolve) => setTimeout(resolve, 300));
      found = await Promise.race([find(document.uri, at), limit]);
    }
    return { status: "success", locations: found.map(location) };
  } catch (error) {
    return { status: "error", message: reason(error) };
  }
}

async function definitions(uri: vscode.Uri, at: vscode.Position): Promise<Place[]> {
  return (await vscode.commands.executeCommand<Place[] | undefined>("vscode.executeDefinitionProvider", uri, at)) ?? [];
}

async function references(uri: vscode.Uri, at: vscode.Position, declaration: boolean): Promise<Place[]> {
  const all = (await vscode.commands.executeCommand<vscode.Location[] | undefined>("vscode.executeReferenceProvider", uri, at)) ?? [];
  if (declaration) return all;
  const key = (place: Place): string => {
    const { uri: where, range } = location(place);
    return `${where} ${JSON.stringify((range as { start: object }).start)}`;
  };
  const declared = new Set((await definitions(uri, at)).map(key));
  return all.filter((one) => !declared.has(key(one)));
}
