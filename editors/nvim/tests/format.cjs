// Formats the plugin with StyLua, or with --check says what is not formatted. StyLua comes from npm, as WebAssembly:
//
//   ECA_NODE_TOOLS=DIR node tests/format.cjs [--check]
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const stylua = require(path.join(process.env.ECA_NODE_TOOLS, "node_modules", "@johnnymorganz", "stylua"));

// formatCode consumes its configuration. It says what stylua.toml says, which this package does not read.
function config() {
  const config = stylua.Config.new();
  config.syntax = stylua.LuaVersion.LuaJIT;
  config.column_width = 120;
  config.indent_type = stylua.IndentType.Spaces;
  config.indent_width = 2;
  config.collapse_simple_statement = stylua.CollapseSimpleStatement.Always;
  return config;
}

const root = path.dirname(__dirname);
const check = process.argv.includes("--check");
let wrong = 0;
for (const dir of ["lua/eca", "plugin", "tests"]) {
  for (const name of fs.readdirSync(path.join(root, dir)).filter((name) => name.endsWith(".lua"))) {
    const file = path.join(root, dir, name);
    const before = fs.readFileSync(file, "utf8");
    const after = stylua.formatCode(before, config(), undefined, stylua.OutputVerification.None);
    if (before === after) continue;
    wrong++;
    if (check) console.log(`not formatted: ${path.relative(root, file)}`);
    else fs.writeFileSync(file, after);
  }
}
process.exit(check && wrong ? 1 : 0);
