/** For the suites. */
import assert from "node:assert";
import fs from "node:fs";
import path from "node:path";
import * as vscode from "vscode";
import type { ServerState } from "../../connection";
import type { Parts } from "../../extension";
import type { Hit } from "../../protocol";
import type { RecallNode } from "../../recall";
import type { Scenario } from "./server";

/** What no text that a person sees may hold. */
export const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/;

/** Resolves with what something gives as soon as it gives something; fails when it takes too long. */
export async function until<Value>(what: () => Value | Promise<Value>, most = 20_000): Promise<NonNullable<Value>> {
  const ends = Date.now() + most;
  for (;;) {
    const value = await what();
    if (value) return value;
    if (Date.now() > ends) throw new Error(`not within ${most} ms: ${what.toString()}`);
    await new Promise((go) => setTimeout(go, 50));
  }
}

/** Activates the extension and waits until its server is in a state. */
export async function partsNow(state: ServerState): Promise<Parts> {
  const extension = vscode.extensions.getExtension<Parts>("funes.funes");
  assert.ok(extension);
  const parts = await extension.activate();
  await inState(parts, state);
  return parts;
}

export async function inState(parts: Parts, state: ServerState): Promise<void> {
  try {
    await until(() => parts.connection.state === state, 30_000);
  } catch {
    throw new Error(`${parts.connection.state}: ${parts.connection.reason} ${parts.connection.detail}`);
  }
}

/** Returns the row of a passage that is shown. */
export function rowOf(parts: Parts, hit: Hit): RecallNode | undefined {
  return parts.recall.getChildren().find((one) => one.kind === "hit" && one.hit === hit);
}

/** What a person sees of a row, and what is read to them. */
export function wordsOf(item: vscode.TreeItem): { label: string; tooltip: string; description: string; read: string } {
  const { label, tooltip, description, accessibilityInformation } = item;
  assert.ok(typeof label === "string" && (tooltip === undefined || typeof tooltip === "string"), "only plain text is shown");
  return { label, tooltip: tooltip ?? "", description: typeof description === "string" ? description : "", read: accessibilityInformation?.label ?? "" };
}

/** Returns every row of a view, opened to its end. */
export function rowsOf<Node>(view: { getChildren: (node?: Node) => Node[]; getTreeItem: (node: Node) => vscode.TreeItem }): { node: Node; item: vscode.TreeItem }[] {
  const all = (nodes: Node[]): Node[] => nodes.flatMap((node) => [node, ...all(view.getChildren(node))]);
  return all(view.getChildren()).map((node) => ({ node, item: view.getTreeItem(node) }));
}

interface Answers {
  input?: string | undefined;
  pick?: (labels: string[]) => string | undefined;
  message?: (text: string, detail: string, choices: string[]) => string | undefined;
}

/** Answers what a person is asked while something runs; returns what was asked, in its order. */
export async function answering(answers: Answers, run: () => unknown): Promise<string[]> {
  const asked: string[] = [];
  const window = vscode.window as unknown as Record<string, (...args: never[]) => unknown>;
  const message = (text: string, ...rest: unknown[]): Promise<unknown> => {
    const [first] = rest;
    const options = typeof first === "object" && first !== null ? (first as { detail?: string; modal?: boolean }) : undefined;
    const choices = (options ? rest.slice(1) : rest).filter((one) => typeof one === "string");
    const detail = options?.detail ?? "";
    asked.push([options?.modal ? "modal" : "message", text, detail].filter(Boolean).join(": "));
    return Promise.resolve(answers.message?.(text, detail, choices));
  };
  const instead: Record<string, (...args: never[]) => unknown> = {
    showInputBox: (options: { title?: string; prompt?: string }) => {
      asked.push(`input: ${options.title ?? ""} ${options.prompt ?? ""}`);
      return Promise.resolve(answers.input);
    },
    showQuickPick: (items: { label: string }[], options: { title?: string }) => {
      const labels = items.map((one) => one.label);
      asked.push(`pick: ${options.title ?? ""}: ${labels.join(", ")}`);
      const label = answers.pick?.(labels);
      return Promise.resolve(items.find((one) => one.label === label));
    },
    showInformationMessage: message,
    showErrorMessage: message,
    showWarningMessage: message,
  };
  const kept = Object.keys(instead).map((name) => [name, window[name]] as const);
  Object.assign(window, instead);
  try {
    await run();
  } finally {
    for (const [name, one] of kept) if (one) window[name] = one;
  }
  return asked;
}

/** Writes settings of the machine, as a person would. */
function machine(settings: Record<string, unknown>): void {
  fs.writeFileSync(process.env["FUNES_TEST_MACHINE"] ?? "", JSON.stringify(settings));
}

/** A server that does as it is told in place of the real one. */
export class Odd {
  static count = 0;
  readonly name = `odd-${++Odd.count}`;
  readonly log = path.join(path.dirname(process.env["FUNES_TEST_MACHINE"] ?? ""), `${this.name}.log`);

  constructor(
    private readonly parts: Parts,
    private readonly scenario: Scenario,
  ) {}

  /** Is started in place of the one that runs; waits until it is in a state. */
  async start(state: ServerState = "running"): Promise<this> {
    const scenario = { ...this.scenario, name: this.name, log: this.log };
    machine({ "funes.server.command": [process.execPath, path.join(__dirname, "server.js"), JSON.stringify(scenario)] });
    await until(() => this.told("start").length > 0);
    await inState(this.parts, state);
    if (state === "running") await until(() => this.parts.connection.client?.initializeResult?.serverInfo?.name === this.name);
    return this;
  }

  /** Returns what it was asked so far, of one kind. */
  told(method: string): unknown[] {
    if (!fs.existsSync(this.log)) return [];
    const lines = fs.readFileSync(this.log, "utf8").split("\n").filter(Boolean);
    return lines.map((line) => JSON.parse(line) as { method: string; params: unknown }).filter((one) => one.method === method).map((one) => one.params);
  }

  /** Lets it do something that a client cannot ask for. */
  async does(what: string, params: object = {}): Promise<void> {
    await this.parts.connection.client?.sendNotification(`odd/${what}`, params);
  }
}

/** Takes a picture of the window, once it shows some words. */
export async function picture(name: string, words = ""): Promise<void> {
  const file = path.join(process.env["FUNES_TEST_SHOTS"] ?? "", `${name}.png`);
  fs.rmSync(file, { force: true });
  // The browser's side of the test listens for this.
  console.log(`${words ? "sees" : "picture"}:${name}:${words}`);
  await until(() => fs.existsSync(file));
}
