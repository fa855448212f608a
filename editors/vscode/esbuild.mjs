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
});
const units = readdirSync("src/test/unit").map((name) => `src/test/unit/${name}`);
await build({ ...common, entryPoints: units, outdir: "out/unit" });
await build({
  ...common,
  entryPoints: ["index", "suite", "untrusted", "multiroot"].map((name) => `src/test/host/${name}.ts`),
  outdir: "out/host",
  external: ["vscode", "mocha"],
});
