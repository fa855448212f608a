/** In a workspace that is not trusted, whose environment has a server, where there is no other. */
import assert from "node:assert";
import * as vscode from "vscode";
import type { Parts } from "../../extension";
import { answering, partsNow, picture } from "./help";

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

  test("the views say what to do, and nothing is installed by itself", async () => {
    await vscode.commands.executeCommand("workbench.view.extension.funes");
    await picture("missing", "Show How to Install It");
    await vscode.commands.executeCommand("funes.install");
    await picture("install", "Read your sessions");
    assert.deepStrictEqual(vscode.window.terminals, []);
  });

  test("every command is there, and none fails loudly but with the reason", async () => {
    const declared = (vscode.extensions.getExtension("funes.funes")?.packageJSON as { contributes: { commands: { command: string }[] } }).contributes.commands;
    for (const { command } of declared) {
      const asked = await answering({ input: "anything" }, () => vscode.commands.executeCommand(command));
      for (const one of asked) assert.match(one, /^(input|pick)|not found on this machine|Choose a passage/, `${command}: ${one}`);
    }
    assert.strictEqual(parts.connection.state, "missing");
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
