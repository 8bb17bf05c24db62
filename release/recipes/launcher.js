#!/usr/bin/env node
// Starts the program from the package for this platform, which npm installed beside this one.
"use strict";

const { spawn } = require("node:child_process");

const name = `@seed-dec29ce4/eca-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/eca${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(`eca: the package ${name} is not installed. Install again without --omit=optional, or download eca for your platform.`);
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (err) => {
  console.error(`eca: cannot start ${program}: ${err.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (!signal) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
