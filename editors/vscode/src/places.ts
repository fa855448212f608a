/** Opens turns, and says what went wrong where a person asked for something. */
import * as vscode from "vscode";
import { oneLine } from "./text";

/** A node of a view that stands for a turn, or a session. */
export interface Place {
  session: string;
  turn: string;
  harness: string;
  cwd: string;
}

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

/** Whether an error only says that the question was withdrawn. */
export function isCancelled(error: unknown): boolean {
  return (error as { code?: number } | undefined)?.code === -32800 || error instanceof vscode.CancellationError;
}
