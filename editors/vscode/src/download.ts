// Downloads the daemon. A file whose checksum differs from the published one is neither kept nor run.
import { createHash, randomUUID } from "node:crypto";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { reason } from "./text";
import { unzip } from "./zip";

const maxArchive = 200 << 20;
const maxProgram = 500 << 20;

const assets: Record<string, string> = {
  "linux-x64": "eca-native-static-linux-amd64",
  "linux-arm64": "eca-native-linux-aarch64",
  "darwin-x64": "eca-native-macos-amd64",
  "darwin-arm64": "eca-native-macos-aarch64",
  "win32-x64": "eca-native-windows-amd64",
  "win32-arm64": "eca-native-windows-arm64",
};

/** The release's file for a platform; undefined if none is built for it. */
export function assetName(platform: string, arch: string): string | undefined {
  const name = assets[`${platform}-${arch}`];
  return name && `${name}.zip`;
}

/** The address of a release's file. It must be https, or http on this machine (a mirror, a tunnel). */
export function assetUrl(base: string, asset: string): URL {
  const url = new URL(`${base.replace(/\/+$/, "")}/${asset}`);
  const local = ["127.0.0.1", "localhost", "[::1]"].includes(url.hostname);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && local)) throw new Error(`${url.protocol}// is not safe to download a program from; use https`);
  return url;
}

async function get(url: URL, limit: number, signal: AbortSignal, progress: (share: number) => void): Promise<Buffer> {
  let response: Response;
  try {
    response = await fetch(url, { signal, redirect: "follow" });
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    throw new Error(`${url.href}: ${reason(cause)}`, { cause: error });
  }
  if (!response.ok || !response.body) throw new Error(`${url.href}: the server answered ${String(response.status)}`);
  const expected = Number(response.headers.get("content-length") ?? 0);
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body as AsyncIterable<Uint8Array>) {
    size += part.length;
    if (size > limit) throw new Error(`${url.href} is larger than ${String(limit)} bytes`);
    parts.push(part);
    if (expected > 0) progress(size / expected);
  }
  return Buffer.concat(parts);
}

/** Downloads the program to a path. The file appears there complete or not at all. */
export async function download(base: string, asset: string, to: string, signal: AbortSignal, progress: (share: number) => void): Promise<void> {
  const url = assetUrl(base, asset);
  const published = (await get(assetUrl(base, `${asset}.sha256`), 1 << 16, signal, () => undefined)).toString("utf8");
  const wanted = /^\s*([0-9a-f]{64})\b/i.exec(published)?.[1]?.toLowerCase();
  if (!wanted) throw new Error(`${url.href}.sha256 has no SHA-256 checksum`);
  const archive = await get(url, maxArchive, signal, progress);
  const found = createHash("sha256").update(archive).digest("hex");
  if (found !== wanted) throw new Error(`${url.href} has the checksum ${found}, and ${wanted} was published: it is damaged or was replaced, and is not used`);
  const program = unzip(archive, process.platform === "win32" ? "eca.exe" : "eca", maxProgram);
  await mkdir(dirname(to), { recursive: true });
  const draft = join(dirname(to), `.${randomUUID()}`);
  try {
    await writeFile(draft, program, { mode: 0o755 });
    await rename(draft, to);
  } finally {
    await rm(draft, { force: true });
  }
}
