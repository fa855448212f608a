/** The view Sessions: all of them, newest first, a page at a time. */
import * as vscode from "vscode";
import type { Connection } from "./connection";
import { listed, said } from "./places";
import type { Session, SessionsAnswer } from "./protocol";
import { opening, words } from "./recall";
import { ageOf, harnessIcon, harnessWord, oneLine, type Place } from "./text";

const PAGE = 200;
const SETTLE_MS = 500;
const GROUPS = ["day", "project", "harness", "none"] as const;
export type Grouping = (typeof GROUPS)[number];

export type SessionNode = { kind: "group"; title: string; sessions: Session[] } | { kind: "session"; session: Session; place: Place } | { kind: "more"; left: number };

export class SessionsView implements vscode.TreeDataProvider<SessionNode>, vscode.Disposable {
  sessions: Session[] = [];
  total = 0;
  grouping: Grouping = "day";
  filter: { title?: string; harness?: string } = {};
  private asked = 0;
  private stale = true;
  private timer: NodeJS.Timeout | undefined;
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  readonly view: vscode.TreeView<SessionNode>;
  private readonly parts: vscode.Disposable[];

  constructor(private readonly connection: Connection) {
    this.view = vscode.window.createTreeView("funes.sessions", { treeDataProvider: this, showCollapseAll: true });
    const look = (): void => void this.read();
    let state = connection.state;
    this.parts = [
      this.view.onDidChangeVisibility(() => this.stale && look()),
      connection.onDidIndex(() => this.soon()),
      connection.onDidChange(() => {
        // Another server may have another memory.
        this.stale ||= state !== connection.state;
        state = connection.state;
        if (this.stale) look();
      }),
    ];
  }

  /** Sessions that are being written change often: one look is enough for all that came meanwhile. */
  private soon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      void this.read();
    }, SETTLE_MS);
  }

  /** Reads anew what is shown, pages that a person has opened too; only while somebody can see it. */
  async read(force = false): Promise<void> {
    this.stale = true;
    if (this.connection.state !== "running" || (!force && !this.view.visible)) return;
    this.stale = false;
    await this.page(0, Math.max(PAGE, this.sessions.length));
  }

  /** Reads the next page. */
  more(): Promise<void> {
    return this.page(this.sessions.length);
  }

  private async page(offset: number, limit = PAGE): Promise<void> {
    const mine = ++this.asked;
    try {
      const answer = await this.connection.request<SessionsAnswer>("funes/sessions", { ...this.filter, limit, offset });
      if (mine !== this.asked) return;
      const page = listed((answer as SessionsAnswer | null)?.sessions);
      this.sessions = [...this.sessions.slice(0, offset), ...page];
      this.total = answer.total;
      this.view.message = undefined;
    } catch (error) {
      if (mine === this.asked) this.view.message = said(error);
    }
    this.view.description = [harnessWord(this.filter.harness ?? ""), oneLine(this.filter.title ?? "", 30)].filter(Boolean).join(" · ");
    this.changed.fire(undefined);
  }

  async setFilter(filter: { title?: string; harness?: string }): Promise<void> {
    this.filter = filter;
    this.sessions = [];
    await this.read(true);
  }

  group(grouping?: Grouping): void {
    this.grouping = grouping ?? GROUPS[(GROUPS.indexOf(this.grouping) + 1) % GROUPS.length] ?? "day";
    this.changed.fire(undefined);
  }

  getChildren(node?: SessionNode): SessionNode[] {
    if (node?.kind === "group") return node.sessions.map(sessionNode);
    if (node !== undefined) return [];
    const rows: SessionNode[] = this.grouping === "none" ? this.sessions.map(sessionNode) : groupsOf(this.sessions, this.grouping);
    const left = this.total - this.sessions.length;
    return left > 0 ? [...rows, { kind: "more", left }] : rows;
  }

  getTreeItem(node: SessionNode): vscode.TreeItem {
    if (node.kind === "more") {
      const item = new vscode.TreeItem(vscode.l10n.t("{0} older sessions…", node.left));
      item.command = { command: "funes.sessions.more", title: vscode.l10n.t("Show More Sessions") };
      item.accessibilityInformation = { label: vscode.l10n.t("Show more of {0} older sessions", node.left), role: "button" };
      return item;
    }
    if (node.kind === "session") return sessionItem(node.session);
    const item = new vscode.TreeItem(oneLine(node.title) || vscode.l10n.t("(unknown)"), vscode.TreeItemCollapsibleState.Expanded);
    item.description = String(node.sessions.length);
    item.accessibilityInformation = { label: vscode.l10n.t("{0}, {1} sessions", words(item), node.sessions.length) };
    return item;
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.parts, this.view, this.changed).dispose();
  }
}

function sessionNode(session: Session): SessionNode {
  return { kind: "session", session, place: { session: session.session_id, turn: "" } };
}

function groupsOf(sessions: readonly Session[], by: Grouping): SessionNode[] {
  const found = new Map<string, Session[]>();
  for (const one of sessions) {
    const day = one.ended_us === null ? "" : new Date(one.ended_us / 1000).toLocaleDateString();
    const key = by === "day" ? day : by === "harness" ? harnessWord(one.harness) : one.cwd || (one.workdir ?? "");
    const all = found.get(key);
    if (all) all.push(one);
    else found.set(key, [one]);
  }
  return [...found].map(([title, all]) => ({ kind: "group", title, sessions: all }));
}

/** A row for a session, in any view. */
export function sessionItem(session: Session, lastUs: number | null = session.ended_us, more = ""): vscode.TreeItem {
  const title = oneLine(session.title) || vscode.l10n.t("Untitled session");
  const item = new vscode.TreeItem(title);
  const about = [harnessWord(session.harness), ageOf(lastUs, Date.now(), vscode.l10n.t), more].filter(Boolean);
  item.description = about.join(" · ");
  item.tooltip = [title, oneLine(session.cwd, 200), vscode.l10n.t("{0} turns", session.turns)].filter(Boolean).join("\n");
  item.iconPath = new vscode.ThemeIcon(harnessIcon(session.harness));
  item.contextValue = "session";
  item.command = opening({ session: session.session_id, turn: "" });
  item.accessibilityInformation = { label: [title, ...about].join(", ") };
  return item;
}
