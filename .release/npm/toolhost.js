#!/usr/bin/env node
// Starts the program, which the package of the platform holds. Nothing is downloaded.
"use strict";
const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { isatty } = require("node:tty");
const self = require("./package.json");

const platform = `${process.platform}-${process.arch}`;
const packages = Object.keys(self.optionalDependencies); // @scope/platform
const ofPlatform = packages.find((name) => name.endsWith(`/${platform}`));

function fail(message) {
  console.error(`toolhost: ${message}`);
  process.exit(1);
}

function find(name) {
  try {
    return require.resolve(`${name}/toolhost${name.includes("/win32-") ? ".exe" : ""}`);
  } catch {
    return undefined;
  }
}

const program = ofPlatform && find(ofPlatform);
if (!program) {
  const other = packages.find(find);
  if (!ofPlatform) {
    fail(`there is no build for ${platform}, only ${packages.join(", ")}.\nBuild it with Go: ${self.homepage}`);
  } else if (other) {
    fail(`${ofPlatform} is not installed, but ${other} is: node_modules was made on another system,\n` +
      "or by a Node.js for another processor. Delete node_modules and install again here.");
  } else {
    fail(`${ofPlatform}, which holds the program, is not installed.\n` +
      "npm leaves it out with --omit=optional or --no-optional. Install again with --include=optional;\n" +
      "if it is still missing, look at: npm config get omit");
  }
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit", windowsHide: true });
child.on("error", (err) => fail(`${program} does not start: ${err.message}`));
child.on("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));

// A terminal sends SIGINT and SIGQUIT to both processes, and a second one would end the program at once. process.stdin must stay
// untouched: it would make the input, which the program shares, non-blocking.
const terminal = [0, 1, 2].some((fd) => isatty(fd));
for (const signal of ["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    if (!terminal || signal === "SIGTERM" || signal === "SIGHUP") child.kill(signal);
  });
}
