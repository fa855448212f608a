/** The view Recall: a question, and the passages that answer it, as they come. */
import * as vscode from "vscode";
import type { Connection } from "./connection";
import { isCancelled, listed, said } from "./places";
import type { Hit, Neighbor, RecallAnswer, Revisit } from "./protocol";
import { addressOf, age, copiesOf, harnessIcon, harnessWord, laterOf, oneLine, visible, type Place } from "./text";

const MOST_TOOLTIP = 2000;

export type RecallNode =
  | { kind: "group"; title: string; hits: Hit[] }
  | { kind: "hit"; hit: Hit; place: Place }
  | { kind: "later"; hit: Hit; later: Revisit; place: Place }
  | { kind: "neighbor"; near: Neighbor; place: Place };

export class RecallView implements vscode.TreeDataProvider<RecallNode>, vscode.Disposable {
  query = "";
  hits: readonly Hit[] = [];
  legs: Record<string, string> = {};
  /** Which memory was asked. */
  private memory = "";
  grouped = false;
  /** How many answers, whole or in part, were shown for the last question. */
  shown = 0;
  private running: vscode.CancellationTokenSource | undefined;
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  readonly view: vscode.TreeView<RecallNode>;

  constructor(private readonly connection: Connection) {
    this.view = vscode.window.createTreeView("funes.recall", { treeDataProvider: this, showCollapseAll: true });
  }

  /** Asks; without a question a person is asked for one first. Resolves with the passages. */
  async ask(given?: string): Promise<readonly Hit[]> {
    const query =
      given ??
      (await vscode.window.showInputBox({
        title: vscode.l10n.t("Recall from past sessions"),
        prompt: vscode.l10n.t("What do you want to know? It is answered on this machine."),
        value: this.query,
      }));
    if (!query?.trim()) return this.hits;
    this.cancel();
    const running = new vscode.CancellationTokenSource();
    this.running = running;
    this.query = query;
    this.shown = 0;
    this.show({ memory: "", note: "", legs: {}, hits: [] }, vscode.l10n.t("Looking…"));
    this.shown = 0;
    void vscode.commands.executeCommand("setContext", "funes.recalling", true);
    if (given === undefined) void vscode.commands.executeCommand("funes.recall.focus");
    const take = (part: RecallAnswer): void => {
      if (this.running === running) this.show(part, vscode.l10n.t("By words; still looking…"));
    };
    try {
      const answer = await this.connection.stream<RecallAnswer, RecallAnswer>("funes/recall", { query }, take, running.token);
      const { length } = listed((answer as RecallAnswer | null)?.hits);
      if (this.running === running) this.show(answer, length > 0 ? noteOf(answer) : vscode.l10n.t("Nothing of this was found."));
    } catch (error) {
      if (this.running === running) this.view.message = isCancelled(error) ? vscode.l10n.t("Stopped.") : said(error);
    } finally {
      if (this.running === running) {
        this.running = undefined;
        void vscode.commands.executeCommand("setContext", "funes.recalling", false);
      }
      running.dispose();
    }
    return this.hits;
  }

  cancel(): void {
    this.running?.cancel();
  }

  toggleGroups(): void {
    this.grouped = !this.grouped;
    this.changed.fire(undefined);
  }

  private show(answer: RecallAnswer, message: string): void {
    this.hits = answer.hits;
    this.legs = answer.legs;
    this.memory = answer.memory;
    this.shown += 1;
    this.view.description = oneLine(this.query, 60);
    this.view.message = message ? oneLine(message, 200) : undefined;
    this.changed.fire(undefined);
  }

  getChildren(node?: RecallNode): RecallNode[] {
    if (node === undefined) return this.grouped ? groups(this.hits) : this.hits.map((hit) => this.node(hit));
    if (node.kind === "group") return node.hits.map((hit) => this.node(hit));
    if (node.kind !== "hit") return [];
    const { hit, place } = node;
    const near = hit.neighbors.map((one): RecallNode => ({ kind: "neighbor", near: one, place: { ...place, session: one.session_id, turn: one.turn_uuid } }));
    const later = hit.revisited;
    if (!later) return near;
    return [{ kind: "later", hit, later, place: { ...place, session: later.session_id, turn: later.turn_uuid } }, ...near];
  }

  private node(hit: Hit): RecallNode {
    const memory = hit.memory === this.memory ? undefined : hit.memory;
    return { kind: "hit", hit, place: { session: hit.session_id, turn: hit.turn_uuid, memory } };
  }

  getTreeItem(node: RecallNode): vscode.TreeItem {
    if (node.kind === "group") {
      const item = new vscode.TreeItem(oneLine(node.title) || vscode.l10n.t("Untitled session"), vscode.TreeItemCollapsibleState.Expanded);
      item.description = String(node.hits.length);
      item.iconPath = new vscode.ThemeIcon(harnessIcon(node.hits[0]?.harness ?? ""));
      item.accessibilityInformation = { label: vscode.l10n.t("{0}, {1} passages", words(item), node.hits.length) };
      return item;
    }
    if (node.kind === "later") return laterItem(node.hit, node.later, node.place);
    return node.kind === "hit" ? hitItem(node.hit, node.place) : neighborItem(node.near, node.place);
  }

  dispose(): void {
    this.cancel();
    this.view.dispose();
    this.changed.dispose();
  }
}

function groups(hits: readonly Hit[]): RecallNode[] {
  const found = new Map<string, Hit[]>();
  for (const hit of hits) found.set(hit.session_id, [...(found.get(hit.session_id) ?? []), hit]);
  return [...found.values()].map((all) => ({ kind: "group", title: all[0]?.title ?? "", hits: all }));
}

/** Returns what a person should know of an answer. */
function noteOf(answer: RecallAnswer): string {
  const weak = answer.weak ? vscode.l10n.t("Weak match: perhaps nothing here answers; these are the nearest passages.") : "";
  return [weak, answer.note].filter(Boolean).join(" ");
}

function hitItem(hit: Hit, place: Place): vscode.TreeItem {
  const isMore = hit.neighbors.length > 0 || hit.revisited;
  const more = isMore ? vscode.TreeItemCollapsibleState.Collapsed : vscode.TreeItemCollapsibleState.None;
  const item = new vscode.TreeItem(oneLine(hit.text) || vscode.l10n.t("(empty)"), more);
  const marks = [laterOf(hit, Date.now(), vscode.l10n.t), ...copiesOf(hit, vscode.l10n.t)].filter(Boolean);
  const about = [harnessWord(hit.harness), age(hit.age_s, vscode.l10n.t), marks[0] ?? "", oneLine(hit.title, 60)].filter(Boolean);
  item.description = about.join(" · ");
  item.tooltip = [visible(hit.text.slice(0, MOST_TOOLTIP)), ...marks].join("\n— ");
  item.iconPath = new vscode.ThemeIcon(harnessIcon(hit.harness));
  item.contextValue = "hit";
  item.command = opening(place);
  item.accessibilityInformation = { label: `${hit.rank}. ${oneLine(hit.text)}, ${[...about, ...marks.slice(1)].join(", ")}` };
  return item;
}

/** The turn in which what a passage is about came up again. */
function laterItem(hit: Hit, later: Revisit, place: Place): vscode.TreeItem {
  const item = new vscode.TreeItem(later.how === "file" ? vscode.l10n.t("Changed again later") : vscode.l10n.t("Said again later"));
  item.description = laterOf(hit, Date.now(), vscode.l10n.t).split(" · ").slice(1).join(" · ");
  item.iconPath = new vscode.ThemeIcon("history");
  item.contextValue = "passage";
  item.command = opening(place);
  item.accessibilityInformation = { label: [words(item), item.description].filter(Boolean).join(", ") };
  return item;
}

function neighborItem(near: Neighbor, place: Place): vscode.TreeItem {
  const item = new vscode.TreeItem(oneLine(near.text) || vscode.l10n.t("(empty)"));
  item.description = [near.role, near.block_type].map((one) => oneLine(one, 20)).join(" · ");
  item.tooltip = visible(near.text.slice(0, MOST_TOOLTIP));
  item.contextValue = "passage";
  item.command = opening(place);
  item.accessibilityInformation = { label: vscode.l10n.t("{0}, nearby: {1}", words(item), item.description) };
  return item;
}

/** The command that opens a turn when its row is chosen. */
export function opening(place: Place): vscode.Command {
  return { command: "vscode.open", title: vscode.l10n.t("Open Turn"), arguments: [vscode.Uri.parse(addressOf(place))] };
}

/** Returns which turn a node of any of the views is about. */
export function placeOf(node: unknown): Place | undefined {
  return (node as { place?: Place } | undefined)?.place;
}

/** Returns what a row says. */
export function words(item: vscode.TreeItem): string {
  return typeof item.label === "string" ? item.label : (item.label?.label ?? "");
}
