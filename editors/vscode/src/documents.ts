/** `funes:` documents: read-only, plain text, folding at turns, going on from one to the next. */
import * as vscode from "vscode";
import type { Connection } from "./connection";
import { reveal, said } from "./places";
import type { DocumentAnswer } from "./protocol";
import { headings, visible } from "./text";

export const SCHEME = "funes";

export class Documents implements vscode.TextDocumentContentProvider, vscode.FoldingRangeProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  /** Where reading of a document begins, until it is shown. */
  private readonly begins = new Map<string, number>();
  private readonly parts: vscode.Disposable[];

  constructor(private readonly connection: Connection) {
    this.parts = [
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.languages.registerFoldingRangeProvider({ scheme: SCHEME }, this),
      // Its name ends with .md for the editors that want files; it is nobody's Markdown.
      vscode.workspace.onDidOpenTextDocument((document) => void plainText(document)),
      vscode.window.onDidChangeActiveTextEditor((editor) => this.begin(editor)),
      vscode.window.onDidChangeVisibleTextEditors((editors) => editors.forEach((one) => this.begin(one))),
      connection.onDidChange(() => this.readAgain()),
    ];
  }

  async provideTextDocumentContent(uri: vscode.Uri, token: vscode.CancellationToken): Promise<string> {
    try {
      const answer = await this.connection.request<DocumentAnswer>("funes/document", { uri: uri.toString() }, token);
      this.begins.set(uri.toString(), answer.line);
      this.unread.delete(uri.toString());
      setTimeout(() => this.begin(vscode.window.activeTextEditor), 0);
      return visible(answer.text);
    } catch (error) {
      this.unread.add(uri.toString());
      return `${said(error)}\n`;
    }
  }

  /** Documents that could not be had; they are asked for again once the server runs. */
  private readonly unread = new Set<string>();

  private readAgain(): void {
    if (this.connection.state !== "running") return;
    for (const uri of this.unread) this.changed.fire(vscode.Uri.parse(uri));
    this.unread.clear();
  }

  private begin(editor: vscode.TextEditor | undefined): void {
    const uri = editor?.document.uri.toString() ?? "";
    const line = this.begins.get(uri);
    if (editor === undefined || line === undefined || line >= editor.document.lineCount) return;
    this.begins.delete(uri);
    if (editor.selection.active.line === 0) reveal(editor, line);
  }

  provideFoldingRanges(document: vscode.TextDocument): vscode.FoldingRange[] {
    const starts = headings(document.getText());
    return starts.map((start, at) => new vscode.FoldingRange(start, (starts[at + 1] ?? document.lineCount) - 1));
  }

  /** Goes to the next turn of the document in the editor, or the previous one. */
  go(forward: boolean): void {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document.uri.scheme !== SCHEME) return;
    const at = editor.selection.active.line;
    const starts = headings(editor.document.getText());
    const line = forward ? starts.find((one) => one > at) : starts.reverse().find((one) => one < at);
    if (line !== undefined) reveal(editor, line);
  }

  dispose(): void {
    vscode.Disposable.from(...this.parts).dispose();
    this.changed.dispose();
  }
}

async function plainText(document: vscode.TextDocument): Promise<void> {
  if (document.uri.scheme === SCHEME && document.languageId !== "funes") {
    await vscode.languages.setTextDocumentLanguage(document, "funes");
  }
}
