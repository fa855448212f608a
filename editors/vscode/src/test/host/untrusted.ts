/** In a workspace that is not trusted, whose environment has a server, where there is no other. */
import assert from "node:assert";
import * as vscode from "vscode";
import type { Parts } from "../../extension";
import { partsNow } from "./help";

suite("funes, untrusted and without a server", () => {
  let parts: Parts;

  suiteSetup(async () => {
    parts = await partsNow("missing");
  });

  test("the workspace is not trusted", () => assert.strictEqual(vscode.workspace.isTrusted, false));

  test("the server of the workspace is not started", () => assert.strictEqual(parts.connection.client, undefined));

  test("the status item leads to how it is installed", () => {
    assert.match(parts.status.item.text, /not installed/);
    assert.strictEqual(parts.status.item.command, "funes.install");
  });

  test("what is asked meanwhile is answered with the reason", async () => {
    await parts.recall.ask("anything");
    assert.match(String(parts.recall.view.message), /not found/);
    const document = await vscode.workspace.openTextDocument(vscode.Uri.parse("funes:/session/x.md"));
    assert.match(document.getText(), /not found/);
  });

  test("the memory is not the workspace's choice", () => {
    assert.strictEqual(vscode.workspace.getConfiguration("funes").get("memory"), "local");
  });
});
