// Finds the daemon's program: in the setting, in this package, on PATH, among the downloads.
import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";
import { compareVersions, line, reason } from "./text";

/** The oldest eca version that this extension works with. */
export const minimum = "0.1.0";
const versionLimit = 10_000;

export interface Program {
  path: string;
  version: string;
  from: "setting" | "package" | "PATH" | "download";
}

/** The problem, and what the user can do about it. */
export class ProgramError extends Error {
  constructor(
    message: string,
    readonly remedy: string,
    readonly missing = false, // a download would help
  ) {
    super(message);
  }
}

export interface Places {
  setting: string;
  extension: string; // folder of this package
  downloads: string; // folder of downloaded programs
}

const fileName = process.platform === "win32" ? "eca.exe" : "eca";

export function bundledPath(places: Places): string {
  return join(places.extension, "bin", fileName);
}

export function downloadedPath(places: Places, version: string): string {
  return join(places.downloads, version, fileName);
}

/** The version of a program that says it is eca; an error says what it is instead. */
export async function versionOf(path: string): Promise<string> {
  const out = await new Promise<string>((resolve, reject) => {
    execFile(path, ["--version"], { timeout: versionLimit, windowsHide: true, maxBuffer: 1 << 16 }, (error, stdout, stderr) => {
      if (error?.killed) reject(new Error(`--version did not end within ${String(versionLimit / 1000)} s`));
      else if (error && stdout === "") reject(new Error(line(stderr) || error.message));
      else resolve(stdout);
    });
  });
  const version = /^eca\s+v?(\d+\.\d+\.\d+\S*)/.exec(out)?.[1];
  if (!version) throw new Error(`it is not eca: --version printed ${JSON.stringify(line(out, 100))}`);
  return version;
}

async function isProgram(path: string): Promise<boolean> {
  return access(path, process.platform === "win32" ? constants.F_OK : constants.X_OK).then(
    () => true,
    () => false,
  );
}

async function onPath(): Promise<string | undefined> {
  // VS Code that was started from a desktop may lack the folder that the README names.
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), join(homedir(), ".local", "bin")];
  for (const folder of folders) {
    // Relative entries such as "." are skipped: a workspace must not choose the program.
    if (isAbsolute(folder) && (await isProgram(join(folder, fileName)))) return join(folder, fileName);
  }
  return undefined;
}

const settingRemedy = 'Correct or empty the setting "eca.path".';

async function configured(setting: string): Promise<Program> {
  const path = setting.replace(/^~(?=\/|\\|$)/, homedir());
  if (!(await isProgram(path))) throw new ProgramError(`The program of the setting "eca.path" cannot be run: ${line(path)}.`, settingRemedy);
  const version = await versionOf(path).catch((error: unknown) => {
    throw new ProgramError(`The program of the setting "eca.path" cannot be used, ${line(path)}: ${reason(error)}.`, settingRemedy);
  });
  if (compareVersions(version, minimum) < 0) throw new ProgramError(`${line(path)} is eca ${version}, and this extension needs ${minimum} or newer.`, "Update it, or empty the setting “eca.path”.");
  return { path, version, from: "setting" };
}

/** Finds the program to run. Programs that cannot be used are logged. */
export async function findProgram(places: Places, log: (text: string) => void): Promise<Program> {
  if (places.setting.trim()) return configured(places.setting.trim());
  const candidates: [Program["from"], string | undefined][] = [["package", bundledPath(places)], ["PATH", await onPath()], ["download", downloadedPath(places, minimum)]];
  const rejected: string[] = [];
  for (const [from, path] of candidates) {
    if (!path || !(await isProgram(path))) continue;
    try {
      const version = await versionOf(path);
      if (compareVersions(version, minimum) >= 0) return { path, version, from };
      rejected.push(`${path} is eca ${version}, and this extension needs ${minimum} or newer.`);
    } catch (error) {
      rejected.push(`${path} cannot be used: ${reason(error)}.`);
    }
  }
  for (const one of rejected) log(one);
  throw new ProgramError(
    rejected[0] ? line(rejected[0]) : "eca is not installed.",
    "Download it when asked, put it on PATH, or name it in the setting “eca.path”. Then try again.",
    true,
  );
}
