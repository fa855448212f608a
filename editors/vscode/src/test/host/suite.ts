/** In the extension host of a real VS Code, against the real server on the sample sessions. */
import assert from "node:assert";
import * as vscode from "vscode";
import type { Parts } from "../../extension";

async function until<Value>(what: () => Value | Promise<Value>, most = 15_000): Promise<NonNullable<Value>> {
  const ends = Date.now() + most;
  for (;;) {
    const value = await what();
    if (value) return value;
    if (Date.now() > ends) throw new Error(`not within ${most} ms: ${what.toString()}`);
    await new Promise((go) => setTimeout(go, 50));
  }
}

suite("funes", () => {
  let parts: Parts;

  suiteSetup(async () => {
    const extension = vscode.extensions.getExtension<Parts>("funes.funes");
    assert.ok(extension);
    parts = await extension.activate();
    try {
      await until(() => parts.connection.state === "running");
    } catch {
      throw new Error(`${parts.connection.state}: ${parts.connection.reason} ${parts.connection.detail}`);
    }
  });

  test("activation takes less than 300 ms", () => assert.ok(parts.activationMs < 300, String(parts.activationMs)));

  test("recall shows passages", async () => {
    const hits = await vscode.commands.executeCommand<unknown[]>("funes.recall", "why did we give up five retry attempts");
    assert.ok(hits.length > 0);
    assert.strictEqual(parts.recall.getChildren().length, hits.length);
  });
});
