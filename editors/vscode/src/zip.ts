// Reads one file out of a zip archive: the releases of eca are such archives.
import { inflateRawSync } from "node:zlib";

const endRecord = 0x06054b50;
const centralHeader = 0x02014b50;
const localHeader = 0x04034b50;

/** The contents of a file of the archive. An error says what is wrong with the archive. */
export function unzip(archive: Buffer, name: string, maxSize: number): Buffer {
  const lowest = Math.max(0, archive.length - 22 - 0xffff);
  let end = archive.length - 22;
  while (end >= lowest && archive.readUInt32LE(end) !== endRecord) end--;
  if (end < lowest) throw new Error("it is not a zip archive");
  let at = archive.readUInt32LE(end + 16);
  for (let i = archive.readUInt16LE(end + 10); i > 0; i--) {
    if (at + 46 > archive.length || archive.readUInt32LE(at) !== centralHeader) break;
    const nameLength = archive.readUInt16LE(at + 28);
    const entry = archive.toString("utf8", at + 46, at + 46 + nameLength);
    if (entry === name) return contents(archive, at, maxSize);
    at += 46 + nameLength + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
  }
  throw new Error(`it has no ${name}`);
}

function contents(archive: Buffer, at: number, maxSize: number): Buffer {
  const method = archive.readUInt16LE(at + 10);
  const packed = archive.readUInt32LE(at + 20);
  const size = archive.readUInt32LE(at + 24);
  const local = archive.readUInt32LE(at + 42);
  if (size > maxSize) throw new Error(`the file is larger than ${String(maxSize)} bytes`);
  if (local + 30 > archive.length || archive.readUInt32LE(local) !== localHeader) throw new Error("it is damaged");
  const start = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28);
  const raw = archive.subarray(start, start + packed);
  const out = method === 0 ? raw : method === 8 ? inflateRawSync(raw, { maxOutputLength: maxSize }) : undefined;
  if (!out) throw new Error(`its compression method ${String(method)} is not supported`);
  if (out.length !== size) throw new Error("it is damaged");
  return out;
}
