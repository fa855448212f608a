/** What can be done with a turn or a session, wherever it is shown. */
import * as fs from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";
import type { Connection } from "./connection";
import { openDocument } from "./places";
import type { GetAnswer, Hit } from "./protocol";
import { placeOf } from "./recall";
import { addressOf, citation, comment, placeAt, plain, typed, visible, type Place } from "./text";

/** How many steps around a turn its document shows, and a little more. */
const AROUND = 4;

export async function openTurn(node: unknown): Promise<void> {
  const place = placeOf(node);
  if (place) await openDocument(vscode.Uri.parse(addressOf(place)));
}

export async function copyCitation(node: unknown): Promise<void> {
  const hit = hitOf(node);
  if (hit) await vscode.env.clipboard.writeText(citation(hit));
}

/** Puts a passage above the line of the cursor, as a comment of the file's language. */
export async function insertComment(node: unknown): Promise<void> {
  const hit = hitOf(node);
  const editor = vscode.window.activeTextEditor;
  if (!hit || editor?.document.uri.scheme === "funes" || !editor) return;
  const line = editor.document.lineAt(editor.selection.active.line);
  const indent = line.text.slice(0, line.firstNonWhitespaceCharacterIndex);
  await editor.edit((edit) => edit.insert(line.range.start, comment(hit, editor.document.languageId, indent)));
}

function hitOf(node: unknown): Hit | undefined {
  const hit = (node as { hit?: Hit } | undefined)?.hit;
  if (!hit) void vscode.window.showInformationMessage(vscode.l10n.t("Choose a passage in the view Recall first."));
  return hit;
}

/** Goes on with a session in a terminal, once the person has agreed to the command. */
export async function reopen(connection: Connection, node: unknown): Promise<void> {
  const place = placeHere(node);
  if (!place) return;
  const answer = await about(connection, place, 0);
  const command = typed(answer.reopen ?? []);
  if (command === undefined) {
    void vscode.window.showInformationMessage(vscode.l10n.t("This session's agent cannot go on with it."));
    return;
  }
  const cwd = answer.cwd && (await isThere(answer.cwd)) ? answer.cwd : undefined;
  const where = cwd ?? (answer.cwd && vscode.l10n.t("Its folder {0} is not on this machine.", answer.cwd));
  const run = vscode.l10n.t("Run");
  const detail = visible([command, where].filter(Boolean).join("\n"));
  const choice = await vscode.window.showInformationMessage(vscode.l10n.t("Run this in a terminal?"), { modal: true, detail }, run);
  if (choice !== run) return;
  const terminal = vscode.window.createTerminal({ name: answer.reopen?.[0] ?? "", ...(cwd === undefined ? {} : { cwd }) });
  terminal.show();
  terminal.sendText(command);
}

/** Opens a file that the session touched; those of the turns in the editor come first. */
export async function openTouched(connection: Connection, node: unknown): Promise<void> {
  const place = placeHere(node);
  if (!place) return;
  const answer = await about(connection, place, AROUND);
  const files = (answer.files ?? []).map((one) => path.resolve(answer.cwd || path.sep, one));
  const found = await Promise.all(files.map(isThere));
  const there = files.filter((_, at) => found[at]);
  if (there.length === 0) {
    void vscode.window.showInformationMessage(vscode.l10n.t("No file that it touched is on this machine."));
    return;
  }
  const picks = there.map((file) => ({ label: plain(visible(path.basename(file))), description: plain(visible(path.dirname(file))), file }));
  const picked = await vscode.window.showQuickPick(picks, { title: vscode.l10n.t("Files it touched"), matchOnDescription: true });
  if (picked) await vscode.window.showTextDocument(vscode.Uri.file(picked.file));
}

function about(connection: Connection, place: Place, window: number): Promise<GetAnswer> {
  return connection.request<GetAnswer>("funes/get", { sessionId: place.session, turnUuid: place.turn, window, ...(place.memory ? { memory: place.memory } : {}) });
}

async function isThere(file: string): Promise<boolean> {
  return fs.promises.access(file).then(
    () => true,
    () => false,
  );
}

/** Returns what a row, or else the document in the editor, is about. */
function placeHere(node: unknown): Place | undefined {
  const uri = vscode.window.activeTextEditor?.document.uri;
  return placeOf(node) ?? (uri?.scheme === "funes" ? placeAt(uri.path, uri.query) : undefined);
}
