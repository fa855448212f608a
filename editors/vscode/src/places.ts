/** Opens turns, and says what went wrong where a person asked for something. */
import * as vscode from "vscode";
import { oneLine } from "./text";

/** Opens a `funes:` document; `line` is where reading begins. */
export async function openDocument(uri: vscode.Uri, line?: number, preserveFocus = false): Promise<vscode.TextEditor> {
  const document = await vscode.workspace.openTextDocument(uri);
  const editor = await vscode.window.showTextDocument(document, { preview: true, preserveFocus });
  if (line !== undefined) reveal(editor, line);
  return editor;
}

export function reveal(editor: vscode.TextEditor, line: number): void {
  const at = new vscode.Position(Math.max(0, Math.min(line, editor.document.lineCount - 1)), 0);
  editor.selection = new vscode.Selection(at, at);
  editor.revealRange(new vscode.Range(at, at), vscode.TextEditorRevealType.AtTop);
}

/** Returns what an error says to a person. */
export function said(error: unknown): string {
  const data = (error as { data?: { hint?: unknown } } | undefined)?.data;
  const message = error instanceof Error ? error.message : String(error);
  return oneLine([message, typeof data?.hint === "string" ? data.hint : ""].filter(Boolean).join(" "), 300);
}

/** Returns a list of an answer.
 * @throws when it is none, as of a server that is not ours. */
export function listed<Item>(list: readonly Item[] | undefined): Item[] {
  if (!Array.isArray(list)) throw new Error(vscode.l10n.t("The answer of the server is not understood."));
  return list as Item[];
}

/** Whether an error only says that the question was withdrawn. */
export function isCancelled(error: unknown): boolean {
  return (error as { code?: number } | undefined)?.code === -32800 || error instanceof vscode.CancellationError;
}
