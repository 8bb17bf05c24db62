// Builds the page from src into dist, which is committed, so that eca builds with Go alone:
//   node build.mjs            writes dist
//   node build.mjs --check    fails if dist is not what src says
//   node build.mjs --tests    bundles the unit tests into build/tests.mjs
import { build } from "esbuild";
import { readFileSync, mkdirSync, writeFileSync, readdirSync } from "node:fs";
import { gunzipSync, gzipSync } from "node:zlib";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const common = { absWorkingDir: here, bundle: true, jsx: "automatic", jsxImportSource: "preact", target: "es2022", format: "esm", charset: "utf8", write: false, legalComments: "none" };
const maxCompressed = 200 * 1024;

if (process.argv.includes("--tests")) {
  const tests = readdirSync(join(here, "tests")).filter((name) => /\.test\.tsx?$/.test(name));
  const out = await build({ ...common, platform: "node", stdin: { contents: tests.map((name) => `import "./${name}";`).join("\n"), resolveDir: join(here, "tests"), loader: "ts" } });
  mkdirSync(join(here, "build"), { recursive: true });
  writeFileSync(join(here, "build", "tests.mjs"), out.outputFiles[0].contents);
  process.exit();
}

const out = await build({ ...common, minify: true, entryPoints: { app: "src/main.tsx", style: "src/style.css", sw: "src/sw.ts" }, outdir: "dist" });
const files = new Map(out.outputFiles.map((file) => [file.path.replaceAll("\\", "/").split("/").at(-1), Buffer.from(file.contents)]));
for (const name of ["index.html", "icon.svg", "manifest.json"]) files.set(name, readFileSync(join(here, "src", name)));
let compressed = 0;
for (const contents of files.values()) compressed += gzipSync(contents).length;
console.log(`dist: ${(compressed / 1024).toFixed(1)} KB compressed, limit ${maxCompressed / 1024} KB`);
if (compressed > maxCompressed) throw new Error("the page is too large");
mkdirSync(join(here, "dist"), { recursive: true });
for (const [name, contents] of files) {
  const path = join(here, "dist", name);
  if (!process.argv.includes("--check")) {
    writeFileSync(path, contents);
    if (name === "app.js") writeFileSync(`${path}.gz`, gzipSync(contents, { level: 9 }));
    continue;
  }
  if (name === "app.js" && !contents.equals(gunzipSync(readFileSync(`${path}.gz`)))) throw new Error(`dist/${name}.gz is not what src says: run npm run build in editors/web and commit dist`);
  if (!contents.equals(readFileSync(path))) throw new Error(`dist/${name} is not what src says: run npm run build in editors/web and commit dist`);
}
