// Makes eca.vsix. With a program, for one platform:
//   node package.mjs [--target linux-x64 --bin PATH] [--out FILE]
import { chmodSync, cpSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createVSIX } from "@vscode/vsce";

const here = dirname(fileURLToPath(import.meta.url));
const { values } = parseArgs({ options: { target: { type: "string" }, bin: { type: "string" }, out: { type: "string" } } });
if (!values.target !== !values.bin) throw new Error("--target and --bin belong together: a package with a program is for one platform");
await import("./build.mjs");
rmSync(join(here, "bin"), { recursive: true, force: true });
if (values.bin) {
  mkdirSync(join(here, "bin"));
  const to = join(here, "bin", values.target.startsWith("win32") ? "eca.exe" : "eca");
  cpSync(values.bin, to);
  chmodSync(to, 0o755);
}
cpSync(join(here, "..", "..", "LICENSE"), join(here, "LICENSE"));
const packagePath = values.out ?? join(here, values.target ? `eca-${values.target}.vsix` : "eca.vsix");
await createVSIX({ cwd: here, packagePath, dependencies: false, baseImagesUrl: "https://raw.githubusercontent.com/seed-dec29ce4/eca/main/editors/vscode", baseContentUrl: "https://github.com/seed-dec29ce4/eca/blob/main/editors/vscode", ...(values.target ? { target: values.target } : {}) });
