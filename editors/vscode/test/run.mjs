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
const shots = process.env.SHOTS;
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
    const picture = /^picture:([\w-]+)$/.exec(text)?.[1];
    // Written whole: the suite waits until the file is there.
    if (picture && shots) {
      await page.screenshot({ path: path.join(shots, `.${picture}.png`) });
      fs.renameSync(path.join(shots, `.${picture}.png`), path.join(shots, `${picture}.png`));
    } else console.log(text);
  });
  const payload = [
    ["extensionDevelopmentPath", remote(extension)],
    ["extensionTestsPath", remote(suite)],
    ["skipWelcome", "true"],
  ];
  const opened = folder.endsWith(".code-workspace") ? "workspace" : "folder";
  await page.goto(`${base}/?${opened}=${encodeURIComponent(folder)}&payload=${encodeURIComponent(JSON.stringify(payload))}`);
  code = await ended;
  if (code !== 0 && shots) await page.screenshot({ path: path.join(shots, "failed.png") });
  console.log(`ended: ${code}; asked elsewhere: ${JSON.stringify([...elsewhere])}`);
} finally {
  await context.close();
  fs.rmSync(profile, { recursive: true, force: true });
}
process.exit(code === 0 ? 0 : 1);
