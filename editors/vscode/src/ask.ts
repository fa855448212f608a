/** Ask: one answer by a coding agent of this machine, grounded on passages, its sources as links. */
import * as vscode from "vscode";
import type { Connection } from "./connection";
import { isCancelled, said } from "./places";
import type { AskAnswer } from "./protocol";
import { addressOf, harnessWord, oneLine, plain, visible } from "./text";

const SCHEME = "funes-answer";
/** By the server's word for each; those that are there come from it. */
// eslint-disable-next-line no-restricted-syntax -- names are the same in all languages
const AGENTS: Record<string, string> = { claude: "Claude Code", codex: "Codex", pi: "pi" };

export class Ask implements vscode.TextDocumentContentProvider, vscode.DocumentLinkProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly sources = new Map<string, AskAnswer["sources"]>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private number = 0;
  private readonly parts: vscode.Disposable[];

  constructor(private readonly connection: Connection) {
    this.parts = [
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.languages.registerDocumentLinkProvider({ scheme: SCHEME }, this),
      vscode.workspace.onDidCloseTextDocument((document) => {
        this.texts.delete(document.uri.toString());
        this.sources.delete(document.uri.toString());
      }),
    ];
  }

  /** Asks a person for the question and the agent, says what would be sent, and sends it on consent. */
  async ask(): Promise<void> {
    const question = await vscode.window.showInputBox({ title: vscode.l10n.t("Ask about past sessions"), prompt: vscode.l10n.t("Nothing is sent before you have agreed.") });
    if (!question?.trim()) return;
    const dry = await this.connection.request<AskAnswer>("funes/ask", { question, dryRun: true });
    if (!dry.prompt) {
      await this.open(`${oneLine(question, 1000)}\n\n${oneLine(dry.note, 1000)}\n`);
      return;
    }
    const agents = dry.installed ?? Object.keys(AGENTS);
    if (agents.length === 0) {
      void vscode.window.showInformationMessage(vscode.l10n.t("No coding agent that could answer is installed here ({0}).", Object.values(AGENTS).join(", ")));
      return;
    }
    const picks = agents.map((agent) => ({ label: AGENTS[agent] ?? plain(oneLine(agent, 40)), agent }));
    const picked = await vscode.window.showQuickPick(picks, { title: vscode.l10n.t("Which agent answers?") });
    if (picked && (await this.isAgreed(dry, picked.label))) await this.send(question, picked.agent);
  }

  /** Says what goes to whom; a person may read it first. */
  private async isAgreed(dry: AskAnswer, agent: string): Promise<boolean> {
    const send = vscode.l10n.t("Send");
    const show = vscode.l10n.t("Show What Is Sent");
    const told = vscode.l10n.t("{0} passages of past sessions ({1} characters) go to {2} on this machine, and from there to whoever runs its model.", dry.sources.length, dry.prompt.length, agent);
    const detail = [told, oneLine(dry.note, 300)].filter(Boolean).join("\n\n");
    const choice = await vscode.window.showInformationMessage(vscode.l10n.t("Send this question?"), { modal: true, detail }, send, show);
    if (choice !== show) return choice === send;
    await this.open(visible(dry.prompt));
    return (await vscode.window.showInformationMessage(vscode.l10n.t("Send this to {0}?", agent), send)) === send;
  }

  private async send(question: string, agent: string): Promise<void> {
    const head = `${oneLine(question, 1000)}\n\n`;
    const uri = await this.open(head);
    let text = "";
    const options = { location: vscode.ProgressLocation.Notification, title: vscode.l10n.t("The agent answers…"), cancellable: true };
    await vscode.window.withProgress(options, async (_, token) => {
      try {
        const take = (part: { text: string }): void => this.put(uri, head + visible((text += part.text)));
        const answer = await this.connection.stream<{ text: string }, AskAnswer>("funes/ask", { question, agent }, take, token);
        this.sources.set(uri.toString(), answer.sources);
        this.put(uri, head + visible(answer.answer || text) + noteLine(answer) + sourceLines(answer));
      } catch (error) {
        this.put(uri, `${head}${visible(text)}\n\n${isCancelled(error) ? vscode.l10n.t("Stopped.") : said(error)}\n`);
      }
    });
  }

  private async open(text: string): Promise<vscode.Uri> {
    const uri = vscode.Uri.parse(`${SCHEME}:/answer-${++this.number}.funes`);
    this.texts.set(uri.toString(), text);
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), { preview: false });
    return uri;
  }

  private put(uri: vscode.Uri, text: string): void {
    this.texts.set(uri.toString(), text);
    this.changed.fire(uri);
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }

  /** Only the lines that we wrote ourselves, below the answer, lead anywhere. */
  provideDocumentLinks(document: vscode.TextDocument): vscode.DocumentLink[] {
    const uri = document.uri.toString();
    const sources = this.sources.get(uri) ?? [];
    // While it still comes, its last lines are the agent's.
    if (document.getText() !== this.texts.get(uri)) return [];
    const first = document.lineCount - 1 - sources.length;
    return sources.map((one, at) => {
      const range = document.lineAt(Math.max(0, first + at)).range;
      return new vscode.DocumentLink(range, vscode.Uri.parse(addressOf({ session: one.session_id, turn: one.turn_uuid })));
    });
  }

  dispose(): void {
    vscode.Disposable.from(...this.parts, this.changed).dispose();
  }
}

/** What a person must know of the answer: that it names sessions it was not given, or that nobody was asked. */
function noteLine(answer: AskAnswer): string {
  return answer.note ? `\n\n${oneLine(answer.note, 1000)}` : "";
}

function sourceLines(answer: AskAnswer): string {
  const lines = answer.sources.map((one) => {
    const about = [harnessWord(one.harness), (one.ts ?? "").slice(0, 10), oneLine(one.session_id)].join(" · ");
    return `[${one.rank}] ${about}${one.cited ? "" : ` ${vscode.l10n.t("(not cited)")}`}`;
  });
  return `\n\n${vscode.l10n.t("Sources")}\n${lines.map((line) => `${line}\n`).join("")}`;
}
