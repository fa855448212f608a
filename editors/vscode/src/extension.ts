/** Puts the parts together. No part does more than ask the server and show what it says. */
import * as vscode from "vscode";
import * as actions from "./actions";
import { Ask } from "./ask";
import { Connection } from "./connection";
import { Documents } from "./documents";
import { Lines } from "./lines";
import { said } from "./places";
import { RecallView } from "./recall";
import { RelatedView, relationWord } from "./related";
import { SessionsView } from "./sessions";
import { Status } from "./status";
import { harnessWord, plain, unlinked } from "./text";

/** When the bundle began to be read; esbuild.mjs writes it at its top. */
declare const bundleBegan: Moment;

interface Moment {
  wall: number;
  cpu: NodeJS.CpuUsage;
}

/** What the tests look at. */
export interface Parts {
  connection: Connection;
  ask: Ask;
  recall: RecallView;
  related: RelatedView;
  sessions: SessionsView;
  documents: Documents;
  lines: Lines;
  status: Status;
  /** Reading the bundle and activating: time of the clock, and of the processor. */
  activation: { wallMs: number; cpuMs: number };
}

let connection: Connection | undefined;

export function activate(context: vscode.ExtensionContext): Parts {
  const began: Moment = { wall: performance.now(), cpu: process.cpuUsage() };
  connection = new Connection();
  const parts = {
    connection,
    recall: new RecallView(connection),
    related: new RelatedView(connection),
    sessions: new SessionsView(connection),
    documents: new Documents(connection),
    lines: new Lines(connection),
    status: new Status(connection),
    ask: new Ask(connection),
  };
  context.subscriptions.push(...Object.values(parts), ...commands(parts));
  watch(context, parts);
  // The server is started once the editor has gone on.
  setImmediate(() => void connection?.restart());
  const took = since(began);
  return { ...parts, activation: { wallMs: reading.wallMs + took.wallMs, cpuMs: reading.cpuMs + took.cpuMs } };
}

function since(moment: Moment): Parts["activation"] {
  const cpu = process.cpuUsage(moment.cpu);
  return { wallMs: performance.now() - moment.wall, cpuMs: (cpu.user + cpu.system) / 1000 };
}

const reading = since(bundleBegan);

export async function deactivate(): Promise<void> {
  await connection?.close();
}

function watch(context: vscode.ExtensionContext, parts: Omit<Parts, "activation">): void {
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

function commands(parts: Omit<Parts, "activation">): vscode.Disposable[] {
  const { ask, connection, recall, related, sessions, documents, lines, status } = parts;
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
    // Keys come without a row: the one that is chosen is meant.
    "funes.openTurn": actions.openTurn,
    "funes.copyCitation": (node) => actions.copyCitation(node ?? recall.view.selection[0]),
    "funes.insertComment": (node) => actions.insertComment(node ?? recall.view.selection[0]),
    "funes.reopen": (node) => actions.reopen(connection, node),
    "funes.openTouched": (node) => actions.openTouched(connection, node),
    "funes.nextTurn": () => documents.go(true),
    "funes.previousTurn": () => documents.go(false),
    "funes.related.filter": () => filterRelated(related),
    "funes.related.sort": () => related.sort(),
    "funes.sessions.filter": () => filterSessions(sessions, status.memory?.harnesses ?? {}),
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
    void vscode.window.showErrorMessage(`Funes: ${unlinked(said(error))}`, log).then((choice) => choice === log && connection.log.show());
    return undefined;
  }
}

async function filterRelated(view: RelatedView): Promise<void> {
  const every = vscode.l10n.t("All");
  const harnesses = [...new Set(view.all.map((one) => one.harness))].map((harness) => ({ label: plain(harnessWord(harness)), filter: { harness } }));
  const relations = [...new Set(view.all.map((one) => one.relation))].map((relation) => ({ label: plain(relationWord(relation)), filter: { relation } }));
  const picked = await vscode.window.showQuickPick([{ label: every, filter: {} }, ...harnesses, ...relations], { title: vscode.l10n.t("Show only") });
  if (picked) view.setFilter(picked.filter);
}

async function filterSessions(view: SessionsView, harnesses: Readonly<Record<string, number>>): Promise<void> {
  const t = vscode.l10n.t;
  const some = Object.entries(harnesses).map(([harness, count]) => ({ label: plain(harnessWord(harness)), description: t("{0} sessions", count), harness }));
  const all = { label: t("All"), description: "", harness: "" };
  const words = { label: t("Words of the titles…"), description: "", harness: undefined };
  const picked = await vscode.window.showQuickPick([all, words, ...some], { title: t("Show only") });
  if (picked?.harness === "") await view.setFilter({});
  else if (picked?.harness) await view.setFilter({ ...view.filter, harness: picked.harness });
  else if (picked) await titled(view);
}

async function titled(view: SessionsView): Promise<void> {
  const given = await vscode.window.showInputBox({ title: vscode.l10n.t("Words of the titles"), value: view.filter.title ?? "" });
  if (given === undefined) return;
  const { harness } = view.filter;
  const title = given.trim();
  await view.setFilter({ ...(harness ? { harness } : {}), ...(title ? { title } : {}) });
}
