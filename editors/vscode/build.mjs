// Builds the extension into dist, and takes the page and the schema from where they are made:
//   node build.mjs            writes dist, page, schema
//   node build.mjs --tests    bundles the unit tests into build/tests.cjs
import { build } from "esbuild";
import { cpSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const common = { absWorkingDir: here, bundle: true, platform: "node", target: "node20", format: "cjs", external: ["vscode"], legalComments: "none" };

if (process.argv.includes("--tests")) {
  const tests = readdirSync(join(here, "tests")).filter((name) => name.endsWith(".test.ts"));
  await build({ ...common, outfile: "build/tests.cjs", stdin: { contents: tests.map((name) => `import "./${name}";`).join("\n"), resolveDir: join(here, "tests"), loader: "ts" } });
  process.exit();
}

await build({ ...common, minify: true, entryPoints: ["src/extension.ts"], outfile: "dist/extension.js" });
rmSync(join(here, "page"), { recursive: true, force: true });
mkdirSync(join(here, "page"));
for (const name of ["app.js", "style.css"]) cpSync(join(here, "..", "web", "dist", name), join(here, "page", name));
mkdirSync(join(here, "schema"), { recursive: true });
cpSync(join(here, "..", "..", "schema", "eca-config.json"), join(here, "schema", "eca-config.json"));
