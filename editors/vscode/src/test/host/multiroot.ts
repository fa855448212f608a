/** In a workspace of two folders, of which one turns hovers off. */
import assert from "node:assert";
import * as vscode from "vscode";
import { partsNow, until } from "./help";

suite("funes, in a workspace of two folders", () => {
  suiteSetup(async () => {
    await partsNow("running");
  });

  const hovers = async (file: string): Promise<number> => {
    const document = await vscode.workspace.openTextDocument(file);
    await vscode.window.showTextDocument(document);
    const at = document.positionAt(document.getText().indexOf("ATTEMPTS = 3"));
    return (await vscode.commands.executeCommand<vscode.Hover[]>("vscode.executeHoverProvider", document.uri, at)).length;
  };

  test("both are open", () => assert.strictEqual(vscode.workspace.workspaceFolders?.length, 2));

  test("each folder's settings count for its files", async () => {
    const file = process.env["FUNES_TEST_FILE"] ?? "";
    await until(async () => (await hovers(file)) > 0);
    const second = vscode.workspace.workspaceFolders?.[1];
    assert.ok(second);
    const funes = vscode.workspace.getConfiguration("funes", vscode.workspace.workspaceFolders?.[0]);
    await funes.update("hover.enabled", false, vscode.ConfigurationTarget.WorkspaceFolder);
    await until(async () => (await hovers(file)) === 0);
    assert.strictEqual(vscode.workspace.getConfiguration("funes", second).get("hover.enabled"), true);
    await funes.update("hover.enabled", undefined, vscode.ConfigurationTarget.WorkspaceFolder);
    await until(async () => (await hovers(file)) > 0);
  });
});
