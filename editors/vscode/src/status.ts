/** The status item and the language status: what the memory is doing. */
import * as vscode from "vscode";
import type { Connection } from "./connection";
import { said } from "./places";
import type { StatusAnswer } from "./protocol";
import { oneLine, plain } from "./text";

export class Status implements vscode.Disposable {
  readonly item = vscode.window.createStatusBarItem("funes.status", vscode.StatusBarAlignment.Right, 1);
  readonly language = vscode.languages.createLanguageStatusItem("funes.memory", { scheme: "file" });
  memory: StatusAnswer | undefined;
  /** Why that could not be asked. */
  problem = "";
  private readonly parts: vscode.Disposable[];

  constructor(private readonly connection: Connection) {
    this.item.name = "funes";
    this.language.name = "funes";
    this.parts = [connection.onDidChange(() => this.draw()), connection.onDidIndex(() => void this.read())];
    this.draw();
    this.item.show();
  }

  /** Asks what the memory holds. */
  async read(): Promise<void> {
    try {
      const answer = await this.connection.request<StatusAnswer | null>("funes/status", {});
      if (typeof answer?.memory !== "string") throw new Error(vscode.l10n.t("The answer of the server is not understood."));
      this.memory = answer;
      this.problem = "";
    } catch (error) {
      this.memory = undefined;
      this.problem = said(error);
    }
    this.draw();
  }

  private draw(): void {
    const { state, reason, indexing } = this.connection;
    const show = (icon: string, words: string, tooltip: string, command: string): void => {
      this.item.text = plain(`funes${words && ` ${words}`}`).replace(/^/, `$(${icon}) `);
      this.item.tooltip = tooltip;
      this.item.command = command;
      this.item.accessibilityInformation = { label: `funes ${words}. ${tooltip}` };
      this.language.text = plain(`funes: ${tooltip}`);
      this.language.busy = state === "starting" || indexing.size > 0;
      this.language.severity = state === "failed" || state === "missing" ? vscode.LanguageStatusSeverity.Warning : vscode.LanguageStatusSeverity.Information;
      this.language.command = { command, title: command === "funes.log" ? vscode.l10n.t("Show Log") : vscode.l10n.t("Recall") };
    };
    const t = vscode.l10n.t;
    const [first] = indexing.values();
    if (state === "missing") return show("circle-slash", t("not installed"), reason, "funes.install");
    if (state === "failed") return show("error", t("error"), reason, "funes.log");
    if (state === "starting") return show("history", "", t("The server starts."), "funes.log");
    if (reason) return show("warning", "", reason, "funes.log");
    if (first) {
      const share = first.percentage === undefined ? t("indexing") : t("indexing {0}%", first.percentage);
      return show("sync~spin", share, oneLine(first.message) || t("Sessions are read."), "funes.log");
    }
    if (this.problem) return show("debug-disconnect", t("offline"), this.problem, "funes.log");
    const memory = this.memory;
    if (!memory) return show("history", "", t("A memory of past sessions."), "funes.recall");
    const counts = t("{0} sessions, {1} passages in {2}", memory.sessions, memory.chunks, oneLine(memory.memory, 60));
    const some = memory.words_only > 0 ? t("words only") : "";
    show("history", some, [counts, oneLine(memory.note, 200)].filter(Boolean).join(" · "), "funes.recall");
  }

  dispose(): void {
    vscode.Disposable.from(...this.parts, this.item, this.language).dispose();
  }
}
