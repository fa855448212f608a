/** Lines of the file in the editor: why they are here, and which of them sessions wrote. */
import * as vscode from "vscode";
import type { Connection } from "./connection";
import { openDocument } from "./places";
import type { BlameAnswer } from "./protocol";
import { harnessWord, oneLine } from "./text";

interface Shown {
  uri: string;
  line: number;
  shown: boolean;
}

export class Lines implements vscode.Disposable {
  readonly mark = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    borderStyle: "solid",
    borderWidth: "0 0 0 2px",
    borderColor: new vscode.ThemeColor("editorGutter.modifiedBackground"),
    overviewRulerColor: new vscode.ThemeColor("editorGutter.modifiedBackground"),
    overviewRulerLane: vscode.OverviewRulerLane.Left,
  });
  /** How many ranges are marked, by document. */
  readonly marked = new Map<string, number>();
  private readonly parts: vscode.Disposable[];

  constructor(private readonly connection: Connection) {
    // Marks are of the text that was asked about.
    this.parts = [vscode.workspace.onDidChangeTextDocument((event) => event.contentChanges.length > 0 && this.clear(event.document))];
  }

  /** Shows where the selected lines come from. */
  async why(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document.uri.scheme !== "file") return;
    const { start, end } = editor.selection;
    const range = { start: { line: start.line, character: 0 }, end: { line: end.line, character: end.character } };
    const answer = await this.connection.execute<Shown>("funes.whyLine", { uri: editor.document.uri.toString(), range });
    if (!answer.shown) await openDocument(vscode.Uri.parse(answer.uri), answer.line);
  }

  /** Marks the lines that sessions wrote, or takes the marks away. */
  async decorate(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document.uri.scheme !== "file") return;
    const { document } = editor;
    if (this.clear(document)) return;
    const { version } = document;
    const params = { textDocument: { uri: document.uri.toString() }, text: document.getText() };
    const answer = await this.connection.request<BlameAnswer>("funes/blame", params);
    if (document.version !== version) return;
    const facts = answer.lines.filter((one) => one.confidence === "exact" || one.confidence === "moved");
    const marks = facts.map((one) => ({
      range: new vscode.Range(one.start - 1, 0, one.end - 1, 0),
      hoverMessage: undefined,
      renderOptions: { after: { contentText: `  ${harnessWord(one.harness)} ${oneLine(one.ts.slice(0, 10))}`, color: new vscode.ThemeColor("editorCodeLens.foreground") } },
    }));
    editor.setDecorations(this.mark, marks);
    this.marked.set(document.uri.toString(), marks.length);
  }

  private clear(document: vscode.TextDocument): boolean {
    if (!this.marked.delete(document.uri.toString())) return false;
    for (const editor of vscode.window.visibleTextEditors) if (editor.document === document) editor.setDecorations(this.mark, []);
    return true;
  }

  dispose(): void {
    vscode.Disposable.from(...this.parts, this.mark).dispose();
  }
}
