// Keeps the daemon running: finds or downloads it, starts it, and restarts it after a crash.
import * as vscode from "vscode";
import { Daemon, DaemonError } from "./daemon";
import { assetName, assetUrl, download } from "./download";
import type { Message } from "./frames";
import { downloadedPath, findProgram, minimum, ProgramError, type Places, type Program } from "./program";
import { line, reason } from "./text";

const startLimit = 30_000;
/** After this many crashes within the window, only the user restarts the daemon. */
const maxCrashes = 3;
const crashWindow = 120_000;

export interface Problem {
  text: string;
  remedy: string;
}

export type State = { kind: "stopped" | "starting" | "running"; problem?: Problem };

interface Initialized {
  chatWelcomeMessage?: string;
}

/** The workspace folders on this machine's disk. */
export function diskFolders(): vscode.WorkspaceFolder[] {
  return (vscode.workspace.workspaceFolders ?? []).filter((one) => one.uri.scheme === "file");
}

const wireFolder = (folder: vscode.WorkspaceFolder): { uri: string; name: string } => ({ uri: folder.uri.toString(), name: folder.name });

export class Supervisor implements vscode.Disposable {
  state: State = { kind: "stopped" };
  daemon: Daemon | undefined;
  program: Program | undefined;
  welcome: Initialized = {};
  onMessage: (message: Message) => void = () => undefined;
  private readonly changed = new vscode.EventEmitter<State>();
  readonly onState = this.changed.event;
  private starting: Promise<Daemon> | undefined;
  private crashTimes: number[] = [];
  private restartTimer: NodeJS.Timeout | undefined;
  private disposed = false;
  private reported: Daemon | undefined; // the last one whose unreadable output was reported to the user

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  private set(state: State): void {
    this.state = state;
    if (state.problem) this.log.error(`${state.problem.text} ${state.problem.remedy}`);
    this.changed.fire(state);
  }

  private places(): Places {
    return {
      setting: vscode.workspace.getConfiguration("eca").get("path", ""),
      extension: this.context.extensionPath,
      downloads: vscode.Uri.joinPath(this.context.globalStorageUri, "bin").fsPath,
    };
  }

  /** Returns the running daemon, after starting it if needed. Rejects with the reason why it cannot start. */
  start(): Promise<Daemon> {
    clearTimeout(this.restartTimer);
    if (this.daemon && this.state.kind === "running") return Promise.resolve(this.daemon);
    this.starting ??= this.begin().finally(() => (this.starting = undefined));
    return this.starting;
  }

  private async begin(): Promise<Daemon> {
    this.set({ kind: "starting" });
    try {
      const folder = this.firstFolder();
      const program = await this.find();
      if (this.disposed) throw new Error("the window is closing");
      this.program = program;
      this.log.info(`starting ${program.path} (eca ${program.version}, from ${program.from}) in ${folder}`);
      return await this.run(program, folder);
    } catch (error) {
      if (this.state.kind !== "stopped") this.set({ kind: "stopped", problem: problemOf(error) });
      throw error;
    }
  }

  private firstFolder(): string {
    const folder = diskFolders()[0];
    if (folder) return folder.uri.fsPath;
    const other = vscode.workspace.workspaceFolders?.[0];
    throw other
      ? new ProgramError(`The folder of this window is not on a disk (${line(other.uri.scheme, 40)}://), and eca works with files.`, "Clone it, or open it on the machine where its files are (Remote - SSH, Dev Containers).")
      : new ProgramError("No folder is open, and eca works in a folder.", "Open one: File > Open Folder.");
  }

  private async find(): Promise<Program> {
    try {
      return await findProgram(this.places(), (text) => this.log.warn(text));
    } catch (error) {
      if (!(error instanceof ProgramError && error.missing && (await this.offerDownload(error)))) throw error;
      return findProgram(this.places(), (text) => this.log.warn(text));
    }
  }

  private async offerDownload(missing: ProgramError): Promise<boolean> {
    const asset = assetName(process.platform, process.arch);
    const base = vscode.workspace.getConfiguration("eca").get("downloadUrl", "").replaceAll("{version}", minimum);
    if (!asset || !base) return false;
    const url = assetUrl(base, asset);
    const accept = "Download";
    this.set({ kind: "starting", problem: { text: missing.message, remedy: "VS Code asks whether to download it: look at its notifications." } });
    const answer = await vscode.window.showWarningMessage(`${missing.message} Download eca ${minimum} (${asset}) from ${url.host}?`, accept, "Not Now");
    if (answer !== accept) return false;
    const options = { location: vscode.ProgressLocation.Notification, title: `Downloading eca ${minimum}`, cancellable: true };
    await vscode.window.withProgress(options, async (progress, token) => {
      const abort = new AbortController();
      token.onCancellationRequested(() => abort.abort(new Error("it was cancelled")));
      let shown = 0;
      try {
        await download(base, asset, downloadedPath(this.places(), minimum), abort.signal, (share) => {
          progress.report({ increment: (share - shown) * 100 });
          shown = share;
        });
      } catch (error) {
        throw new ProgramError(`eca was not downloaded: ${reason(abort.signal.aborted ? abort.signal.reason : error)}.`, "Try again, or install eca and put it on PATH.");
      }
    });
    return true;
  }

  private async run(program: Program, folder: string): Promise<Daemon> {
    const daemon: Daemon = new Daemon(program.path, ["server"], folder, {
      onMessage: (message) => this.onMessage(message),
      onLog: (text) => this.logLines(text),
      onProblem: (problem) => this.reportUnreadable(daemon, problem),
      onExit: (cause) => this.ended(daemon, cause),
      onSilence: (silent) => void this.silence(daemon, silent),
    });
    this.daemon = daemon;
    const initialized = daemon.request<Initialized>("initialize", {
      processId: process.pid,
      clientInfo: { name: "eca-vscode", version: (this.context.extension.packageJSON as { version: string }).version },
      capabilities: {
        codeAssistant: {
          chat: true, rewrite: true, editor: { diagnostics: true, definition: true, references: true },
          chatCapabilities: { askQuestion: true, remount: true },
        },
      },
      workspaceFolders: diskFolders().map(wireFolder),
    });
    const timedOut = new Promise<never>((_, reject) => {
      setTimeout(() => reject(new DaemonError(`eca did not answer within ${String(startLimit / 1000)} s after its start`)), startLimit).unref();
    });
    try {
      this.welcome = await Promise.race([initialized, timedOut]);
    } catch (error) {
      daemon.kill();
      throw error;
    }
    if (this.daemon !== daemon) throw new DaemonError("eca was ended while it started"); // restarted meanwhile
    daemon.notify("initialized", {});
    this.set({ kind: "running" });
    return daemon;
  }

  private ended(daemon: Daemon, cause: string | undefined): void {
    if (this.daemon !== daemon) return;
    this.daemon = undefined;
    if (cause === undefined) {
      if (this.state.kind === "running") this.set({ kind: "stopped" });
      return;
    }
    const text = `eca ${line(cause)}.`;
    const now = Date.now();
    this.crashTimes = [...this.crashTimes.filter((time) => now - time < crashWindow), now];
    if (this.state.kind === "starting") return; // begin reports the problem
    if (this.crashTimes.length >= maxCrashes) {
      this.set({ kind: "stopped", problem: { text: `${text} It ended ${String(this.crashTimes.length)} times within two minutes.`, remedy: "Look at its log (eca: Show Log), then try again." } });
      return;
    }
    this.set({ kind: "stopped", problem: { text: `${text} Its running turns have ended.`, remedy: "It is being started again…" } });
    void this.warn(`${text} Its running turns have ended, and it is started again.`); // the view shows it only until the daemon runs again
    this.restartTimer = setTimeout(() => void this.start().catch(() => undefined), 300 * 2 ** this.crashTimes.length);
  }

  /** Logs output that cannot be read, and tells the user once per daemon. */
  private reportUnreadable(daemon: Daemon, problem: string): void {
    this.log.warn(`eca ${problem}`);
    if (this.reported === daemon) return;
    this.reported = daemon;
    void this.warn("eca sent something that cannot be read, and it was skipped. If something is missing in the chat, restart eca (eca: Restart).");
  }

  /** Warns in a notification, which stays in the notification list. */
  private async warn(text: string): Promise<void> {
    const log = "Show Log";
    if ((await vscode.window.showWarningMessage(text, log)) === log) this.log.show();
  }

  private async silence(daemon: Daemon, silent: boolean): Promise<void> {
    if (!silent) { this.log.info("eca answers again"); return; }
    this.log.warn("eca does not answer");
    if (this.state.kind !== "running") return; // the start has a limit of its own
    const restart = "Restart eca";
    const answer = await vscode.window.showWarningMessage("eca does not answer. Its turns end if it is restarted.", restart, "Wait");
    if (answer === restart && this.daemon === daemon) await this.restart();
  }

  /** Stops the daemon, by force if need be, and starts another. */
  async restart(): Promise<void> {
    await this.stop();
    this.crashTimes = [];
    await this.start().catch(() => undefined); // the state holds the problem
  }

  async stop(): Promise<void> {
    clearTimeout(this.restartTimer);
    const { daemon } = this;
    this.daemon = undefined;
    if (!daemon) return;
    this.set({ kind: "stopped" });
    await daemon.stop();
  }

  changeFolders(event: vscode.WorkspaceFoldersChangeEvent): void {
    const onDisk = (list: readonly vscode.WorkspaceFolder[]): object[] => list.filter((one) => one.uri.scheme === "file").map(wireFolder);
    if (this.state.kind === "running") this.daemon?.notify("workspace/didChangeWorkspaceFolders", { event: { added: onDisk(event.added), removed: onDisk(event.removed) } });
    else if (this.state.problem) void this.start().catch(() => undefined);
  }

  private logLines(text: string): void {
    for (const one of text.split("\n")) {
      if (!one.trim()) continue;
      const level = /\blevel=(\w+)|^\S* ?(DEBUG|INFO|WARN|ERROR)\b/.exec(one);
      switch ((level?.[1] ?? level?.[2])?.toUpperCase()) {
        case "DEBUG": this.log.debug(one); break;
        case "WARN": this.log.warn(one); break;
        case "ERROR": this.log.error(one); break;
        default: this.log.info(one);
      }
    }
  }

  dispose(): void {
    this.disposed = true;
    void this.stop();
    this.changed.dispose();
  }
}

function problemOf(error: unknown): Problem {
  if (error instanceof ProgramError) return { text: error.message, remedy: error.remedy };
  return { text: `eca could not be started: ${reason(error)}.`, remedy: "Look at its log (eca: Show Log), then try again." };
}
