// Bundles the extension, its unit tests and the suite that runs in the extension host.
import { build } from "esbuild";
import { readdirSync, rmSync } from "node:fs";

rmSync("out", { recursive: true, force: true });
const common = { bundle: true, platform: "node", format: "cjs", target: "node20", logLevel: "warning" };
await build({
  ...common,
  entryPoints: ["src/extension.ts"],
  outfile: "out/extension.js",
  external: ["vscode"],
  minify: true,
  // What reading it costs is part of what activation costs.
  banner: { js: "const bundleBegan={wall:performance.now(),cpu:process.cpuUsage()};" },
});
const units = readdirSync("src/test/unit").map((name) => `src/test/unit/${name}`);
await build({ ...common, entryPoints: units, outdir: "out/unit" });
await build({
  ...common,
  entryPoints: readdirSync("src/test/host").map((name) => `src/test/host/${name}`),
  outdir: "out/host",
  external: ["vscode", "mocha"],
});
