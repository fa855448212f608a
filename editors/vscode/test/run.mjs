// node run.mjs BASE FOLDER EXTENSION SUITE: runs a suite in the extension host of a VS Code server, seen
// through a browser, and ends as the suite does.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import util from "node:util";
import { open } from "./browser.mjs";

const [base, folder, extension, suite] = process.argv.slice(2);
const remote = (place) => `vscode-remote://${new URL(base).host}${place}`;
const limitMs = Number(process.env.LIMIT_S ?? 260) * 1000;
const shots = process.env.FUNES_TEST_SHOTS;
const profile = fs.mkdtempSync(path.join(os.tmpdir(), "funes-browser-"));
const { context, page, elsewhere } = await open(profile);
let code = 1;
try {
  const ended = new Promise((done) => {
    setTimeout(() => done("timeout"), limitMs).unref();
    page.on("crash", () => done("crash"));
    void page.exposeFunction("codeAutomationExit", done);
  });
  await page.exposeFunction("codeAutomationLog", async (_, args) => {
    const text = util.format(...args);
    const [, asks, name, words] = /^(picture|sees):([\w-]+):(.*)$/.exec(text) ?? [];
    if (!asks) return console.log(text);
    // The suite waits until the file is there; it appears whole.
    const made = path.join(shots, `.${name}.png`);
    if (asks === "sees") await page.getByText(words).first().waitFor();
    await page.screenshot({ path: made });
    fs.renameSync(made, path.join(shots, `${name}.png`));
  });
  const payload = [
    ["extensionDevelopmentPath", remote(extension)],
    ["extensionTestsPath", remote(suite)],
    ["skipWelcome", "true"],
  ];
  const opened = folder.endsWith(".code-workspace") ? "workspace" : "folder";
  await page.goto(`${base}/?${opened}=${encodeURIComponent(folder)}&payload=${encodeURIComponent(JSON.stringify(payload))}`);
  code = await ended;
  if (code !== 0) await page.screenshot({ path: path.join(shots, "failed.png") });
  console.log(`ended: ${code}; asked elsewhere: ${JSON.stringify([...elsewhere])}`);
} finally {
  await context.close();
  fs.rmSync(profile, { recursive: true, force: true });
}
process.exit(code === 0 ? 0 : 1);
