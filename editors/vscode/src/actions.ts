/** What can be done with a turn or a session, wherever it is shown. */
import * as fs from "node:fs";
import * as vscode from "vscode";
import type { Connection } from "./connection";
import { openDocument, type Place } from "./places";
import type { GetAnswer, Hit } from "./protocol";
import { placeOf } from "./recall";
import { addressOf, citation, comment, partsOf, plain, resumeCommand, touchedPaths } from "./text";

const WIDE = 40;

export async function openTurn(node: unknown): Promise<void> {
  const place = placeOf(node);
  if (place) await openDocument(vscode.Uri.parse(addressOf(place.session, place.turn)));
}

export async function copyCitation(node: unknown): Promise<void> {
  const hit = (node as { hit?: Hit } | undefined)?.hit;
  if (hit) await vscode.env.clipboard.writeText(citation(hit));
}

/** Puts a passage above the line of the cursor, as a comment of the file's language. */
export async function insertComment(node: unknown): Promise<void> {
  const hit = (node as { hit?: Hit } | undefined)?.hit;
  const editor = vscode.window.activeTextEditor;
  if (!hit || editor?.document.uri.scheme === "funes" || !editor) return;
  const line = editor.document.lineAt(editor.selection.active.line);
  const indent = line.text.slice(0, line.firstNonWhitespaceCharacterIndex);
  await editor.edit((edit) => edit.insert(line.range.start, comment(hit, editor.document.languageId, indent)));
}

/** Goes on with a session in a terminal, once the person has agreed to the command. */
export async function reopen(connection: Connection, node: unknown): Promise<void> {
  const place = await placeHere(connection, node);
  const command = place && resumeCommand(place.harness, place.session);
  if (!place || !command) {
    void vscode.window.showInformationMessage(vscode.l10n.t("This session's agent cannot go on with it."));
    return;
  }
  const cwd = place.cwd && fs.existsSync(place.cwd) ? place.cwd : undefined;
  const run = vscode.l10n.t("Run");
  const detail = [command.join(" "), cwd ?? ""].filter(Boolean).join("\n");
  const choice = await vscode.window.showInformationMessage(vscode.l10n.t("Run this in a terminal?"), { modal: true, detail }, run);
  if (choice !== run) return;
  const terminal = vscode.window.createTerminal({ name: command[0] ?? "", ...(cwd === undefined ? {} : { cwd }) });
  terminal.show();
  terminal.sendText(command.join(" "));
}

/** Opens a file that the turns of the document in the editor touched. */
export async function openTouched(connection: Connection, node: unknown): Promise<void> {
  const place = await placeHere(connection, node);
  if (!place) return;
  const answer = await connection.request<GetAnswer>("funes/get", { sessionId: place.session, turnUuid: place.turn, window: WIDE });
  const texts = answer.turns.flatMap((turn) => turn.blocks).filter((one) => one.block_type === "tool_use").map((one) => one.text);
  const paths = touchedPaths(texts).map((one) => (one.startsWith("/") || /^[A-Za-z]:/.test(one) ? one : `${answer.cwd}/${one}`));
  const there = [...new Set(paths)].filter((one) => fs.existsSync(one));
  if (there.length === 0) {
    void vscode.window.showInformationMessage(vscode.l10n.t("No file that it touched is on this machine."));
    return;
  }
  const picks = there.map((path) => ({ label: plain(path), path }));
  const picked = await vscode.window.showQuickPick(picks, { title: vscode.l10n.t("Files it touched") });
  if (picked) await vscode.window.showTextDocument(vscode.Uri.file(picked.path));
}

async function placeHere(connection: Connection, node: unknown): Promise<Place | undefined> {
  const place = placeOf(node);
  if (place) return place;
  const uri = vscode.window.activeTextEditor?.document.uri;
  const parts = uri?.scheme === "funes" ? partsOf(uri.path) : undefined;
  if (!parts) return undefined;
  const answer = await connection.request<GetAnswer>("funes/get", { sessionId: parts.session, turnUuid: parts.turn, window: 0 });
  return { ...parts, harness: answer.harness, cwd: answer.cwd };
}
