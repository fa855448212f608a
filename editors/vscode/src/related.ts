/** The view Related to This File: sessions that have to do with the file in the editor. */
import * as vscode from "vscode";
import type { Connection } from "./connection";
import { isCancelled, listed, said } from "./places";
import type { RelatedAnswer, RelatedSession } from "./protocol";
import { opening, words } from "./recall";
import { sessionItem } from "./sessions";
import { harnessWord, oneLine, visible, type Place } from "./text";

const MOST = 50;
const SETTLE_MS = 150;

export type RelatedNode = { kind: "session"; session: RelatedSession; place: Place } | { kind: "passage"; text: string; place: Place };

export class RelatedView implements vscode.TreeDataProvider<RelatedNode>, vscode.Disposable {
  file: vscode.Uri | undefined;
  all: readonly RelatedSession[] = [];
  filter: { harness?: string; relation?: string } = {};
  newestFirst = false;
  private running: vscode.CancellationTokenSource | undefined;
  private timer: NodeJS.Timeout | undefined;
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  readonly view: vscode.TreeView<RelatedNode>;
  private readonly parts: vscode.Disposable[];

  constructor(private readonly connection: Connection) {
    this.view = vscode.window.createTreeView("funes.related", { treeDataProvider: this });
    const soon = (): void => this.soon();
    let state = connection.state;
    this.parts = [
      this.view.onDidChangeVisibility(soon),
      vscode.window.onDidChangeActiveTextEditor(soon),
      connection.onDidIndex(soon),
      connection.onDidChange(() => {
        if (state !== connection.state) soon();
        state = connection.state;
      }),
    ];
  }

  /** Looks once the person has settled on a file, not at each one that is passed by. */
  private soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.read(), SETTLE_MS);
  }

  /** Looks what is known of the file in the editor; only while somebody can see it. */
  async read(force = false): Promise<void> {
    const uri = vscode.window.activeTextEditor?.document.uri;
    if (uri?.scheme !== "file" || this.connection.state !== "running" || (!force && !this.view.visible)) return;
    this.running?.cancel();
    const running = new vscode.CancellationTokenSource();
    this.running = running;
    try {
      const answer = await this.connection.request<RelatedAnswer>("funes/related", { textDocument: { uri: uri.toString() }, limit: MOST }, running.token);
      if (this.running !== running) return;
      this.file = uri;
      this.all = listed((answer as RelatedAnswer | null)?.sessions);
      this.view.message = undefined;
    } catch (error) {
      if (this.running === running && !isCancelled(error)) this.view.message = said(error);
    }
    this.show();
  }

  setFilter(filter: { harness?: string; relation?: string }): void {
    this.filter = filter;
    this.show();
  }

  sort(): void {
    this.newestFirst = !this.newestFirst;
    this.show();
  }

  private show(): void {
    const { harness, relation } = this.filter;
    const filters = [harness && harnessWord(harness), relation && relationWord(relation)].filter(Boolean).join(" · ");
    const name = this.file === undefined ? "" : (this.file.path.split("/").at(-1) ?? "");
    this.view.description = oneLine([name, filters].filter(Boolean).join(" · "), 80);
    this.changed.fire(undefined);
  }

  getChildren(node?: RelatedNode): RelatedNode[] {
    if (node?.kind === "passage") return [];
    if (node) {
      const { passage } = node.session;
      return passage ? [{ kind: "passage", text: passage.text, place: { ...node.place, turn: passage.turn_uuid } }] : [];
    }
    const { harness, relation } = this.filter;
    const kept = this.all.filter((one) => (!harness || one.harness === harness) && (!relation || one.relation === relation));
    if (this.newestFirst) kept.sort((one, other) => (other.last_us ?? 0) - (one.last_us ?? 0));
    return kept.map((session) => {
      return { kind: "session", session, place: { session: session.session_id, turn: "" } };
    });
  }

  getTreeItem(node: RelatedNode): vscode.TreeItem {
    if (node.kind === "session") {
      const item = sessionItem(node.session, node.session.last_us, relationWord(node.session.relation));
      if (node.session.passage) item.collapsibleState = vscode.TreeItemCollapsibleState.Collapsed;
      return item;
    }
    const item = new vscode.TreeItem(oneLine(node.text) || vscode.l10n.t("(empty)"));
    item.tooltip = visible(node.text.slice(0, 2000));
    item.contextValue = "passage";
    item.command = opening(node.place);
    item.accessibilityInformation = { label: vscode.l10n.t("asked then: {0}", words(item)) };
    return item;
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.running?.cancel();
    vscode.Disposable.from(...this.parts, this.view, this.changed).dispose();
  }
}

/** Returns the word for how a session has to do with a file. */
export function relationWord(relation: string): string {
  const t = vscode.l10n.t;
  const known: Record<string, string> = { edited: t("edited"), read: t("read"), mentioned: t("mentioned"), symbols: t("symbols"), similar: t("similar") };
  return known[relation] ?? oneLine(relation, 20);
}
