/** Puts the parts together. No part does more than ask the server and show what it says. */
import * as vscode from "vscode";
import * as actions from "./actions";
import { Ask } from "./ask";
import { Connection } from "./connection";
import { Documents } from "./documents";
import { Lines } from "./lines";
import { said } from "./places";
import { RecallView } from "./recall";
import { RelatedView } from "./related";
import { SessionsView } from "./sessions";
import { Status } from "./status";

/** What the tests look at. */
export interface Parts {
  connection: Connection;
  recall: RecallView;
  related: RelatedView;
  sessions: SessionsView;
  documents: Documents;
  lines: Lines;
  status: Status;
  activationMs: number;
}

let connection: Connection | undefined;

export function activate(context: vscode.ExtensionContext): Parts {
  const began = performance.now();
  connection = new Connection();
  const parts = {
    connection,
    recall: new RecallView(connection),
    related: new RelatedView(connection),
    sessions: new SessionsView(connection),
    documents: new Documents(connection),
    lines: new Lines(connection),
    status: new Status(connection),
  };
  const ask = new Ask(connection);
  context.subscriptions.push(...Object.values(parts), ask, ...commands(parts, ask));
  watch(context, parts);
  void connection.restart();
  return { ...parts, activationMs: performance.now() - began };
}

export async function deactivate(): Promise<void> {
  await connection?.close();
}

function watch(context: vscode.ExtensionContext, parts: Omit<Parts, "activationMs">): void {
  const { connection, status } = parts;
  let state = connection.state;
  context.subscriptions.push(
    connection.onDidChange(() => {
      const began = state !== "running" && connection.state === "running";
      state = connection.state;
      if (began) void status.read();
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => connection.state === "missing" && void connection.restart()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("funes.server")) void connection.restart();
      else if (event.affectsConfiguration("funes")) {
        void connection.client?.sendNotification("workspace/didChangeConfiguration", { settings: null });
      }
    }),
  );
}

function commands(parts: Omit<Parts, "activationMs">, ask: Ask): vscode.Disposable[] {
  const { connection, recall, related, sessions, documents, lines, status } = parts;
  const all: Record<string, (...args: unknown[]) => unknown> = {
    "funes.recall": (query) => recall.ask(typeof query === "string" ? query : undefined),
    "funes.recall.cancel": () => recall.cancel(),
    "funes.recall.group": () => recall.toggleGroups(),
    "funes.why": () => lines.why(),
    "funes.decorate": () => lines.decorate(),
    "funes.ask": () => ask.ask(),
    "funes.update": async () => {
      await connection.request("funes/index", {});
      await Promise.all([status.read(), sessions.read(), related.read()]);
    },
    "funes.lenses": () => connection.execute("funes.toggleCodeLens"),
    "funes.restart": () => connection.restart(),
    "funes.log": () => connection.log.show(),
    "funes.install": () => vscode.commands.executeCommand("workbench.action.openWalkthrough", "funes.funes#install"),
    "funes.openTurn": actions.openTurn,
    "funes.copyCitation": actions.copyCitation,
    "funes.insertComment": actions.insertComment,
    "funes.reopen": (node) => actions.reopen(connection, node),
    "funes.openTouched": (node) => actions.openTouched(connection, node),
    "funes.nextTurn": () => documents.go(true),
    "funes.previousTurn": () => documents.go(false),
    "funes.related.filter": () => filterRelated(related),
    "funes.related.sort": () => related.sort(),
    "funes.sessions.filter": () => filterSessions(sessions),
    "funes.sessions.group": () => sessions.group(),
    "funes.sessions.more": () => sessions.more(),
  };
  return Object.entries(all).map(([name, run]) => vscode.commands.registerCommand(name, (...args: unknown[]) => shown(connection, () => run(...args))));
}

/** Runs what a person asked for; what goes wrong is said to them. */
async function shown(connection: Connection, run: () => unknown): Promise<unknown> {
  try {
    return await run();
  } catch (error) {
    const log = vscode.l10n.t("Show Log");
    void vscode.window.showErrorMessage(`Funes: ${said(error)}`, log).then((choice) => choice === log && connection.log.show());
    return undefined;
  }
}

async function filterRelated(view: RelatedView): Promise<void> {
  const every = vscode.l10n.t("All");
  const harnesses = [...new Set(view.all.map((one) => one.harness))].map((harness) => ({ label: harness, filter: { harness } }));
  const relations = [...new Set(view.all.map((one) => one.relation))].map((relation) => ({ label: relation, filter: { relation } }));
  const picked = await vscode.window.showQuickPick([{ label: every, filter: {} }, ...harnesses, ...relations], { title: vscode.l10n.t("Show only") });
  if (picked) view.setFilter(picked.filter);
}

async function filterSessions(view: SessionsView): Promise<void> {
  const title = await vscode.window.showInputBox({ title: vscode.l10n.t("Words of the titles"), value: view.filter.title ?? "" });
  if (title !== undefined) await view.setFilter(title.trim() ? { title: title.trim() } : {});
}
