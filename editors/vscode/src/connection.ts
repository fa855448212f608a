/** The language server: found, started, restarted within bounds, and asked. */
import * as os from "node:os";
import * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  ProgressType,
  State,
  type LanguageClientOptions,
  type StaticFeature,
} from "vscode-languageclient/node";
import { serverCommand } from "./find";
import { sectionOf } from "./settings";
import { oneLine, plain, visible } from "./text";

export const PROTOCOL = 1;
const MOST_RESTARTS = 4;
const RESTARTS_WITHIN_MS = 180_000;
/** How long a server that is started has to answer. */
const PATIENCE_MS = 60_000;

export type ServerState = "starting" | "missing" | "running" | "failed";

/** Problems are told in the status item; the log has the details. Never a notification. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

/** We ask for the text of `funes:` documents ourselves, so that it is there, and readable, always. */
const documents: StaticFeature = {
  fillClientCapabilities(capabilities) {
    capabilities.experimental = { ...(capabilities.experimental as object | undefined), funes: { virtualDocuments: true } };
    delete capabilities.workspace?.textDocumentContent;
  },
  initialize: () => undefined,
  getState: () => ({ kind: "static" }),
  clear: () => undefined,
};

export interface Indexing {
  percentage: number | undefined;
  message: string;
}

export class Connection implements vscode.Disposable {
  readonly log = vscode.window.createOutputChannel("funes", { log: true });
  client: LanguageClient | undefined;
  state: ServerState = "starting";
  /** Why it does not run, or what is odd about it. */
  reason = "";
  /** What the log has of it. */
  detail = "";
  readonly indexing = new Map<string | number, Indexing>();
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  private readonly indexed = new vscode.EventEmitter<void>();
  readonly onDidIndex = this.indexed.event;
  patienceMs = PATIENCE_MS;
  private closedAt: number[] = [];
  private token = 0;
  private turn: Promise<void> = Promise.resolve();

  /** Starts the server, or starts it anew; one after the other. Never fails: the state says it. */
  restart(): Promise<void> {
    this.closedAt = [];
    this.turn = this.turn.then(() => this.startNow());
    return this.turn;
  }

  private async startNow(): Promise<void> {
    await this.stop();
    const command = serverCommand({
      command: vscode.workspace.getConfiguration("funes").get<string[]>("server.command", []),
      trustedFolders: vscode.workspace.isTrusted
        ? (vscode.workspace.workspaceFolders ?? []).filter((one) => one.uri.scheme === "file").map((one) => one.uri.fsPath)
        : [],
      env: process.env,
      home: os.homedir(),
      windows: process.platform === "win32",
    });
    const program = command?.[0];
    if (command === undefined || program === undefined) {
      this.set("missing", vscode.l10n.t("funes-ls was not found on this machine."));
      return;
    }
    this.set("starting");
    const client = this.makeClient(program, command.slice(1));
    this.client = client;
    const waiting = setTimeout(() => void this.giveUp(client), this.patienceMs);
    try {
      await client.start();
    } catch (error) {
      if (client !== this.client) return;
      this.detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.log.error(`The server does not start: ${this.detail}`);
      this.set("failed", vscode.l10n.t("The server does not start."));
    } finally {
      clearTimeout(waiting);
    }
  }

  /** Ends a program that was started and does not answer: it may be none of ours. */
  private async giveUp(client: LanguageClient): Promise<void> {
    if (client !== this.client) return;
    this.log.error("The server that was started does not answer.");
    await this.stop();
    this.set("failed", vscode.l10n.t("The server does not answer."));
  }

  private makeClient(command: string, args: string[]): LanguageClient {
    const options: LanguageClientOptions = {
      documentSelector: [{ scheme: "file" }, { scheme: "untitled" }, { scheme: "funes" }],
      outputChannel: this.log,
      initializationOptions: { virtualDocuments: true },
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => ({ action: this.closed(), handled: true }),
      },
      markdown: { isTrusted: false, supportHtml: false },
      middleware: {
        workspace: {
          configuration: (params) =>
            params.items.map((item) => {
              const scope = item.scopeUri === undefined ? undefined : vscode.Uri.parse(item.scopeUri);
              const section = vscode.workspace.getConfiguration("funes", scope);
              return item.section === "funes" ? sectionOf((key) => section.inspect(key)) : null;
            }),
        },
        provideHover: async (document, position, token, next) => {
          const hover = await next(document, position, token);
          return hover && harmless(hover);
        },
        provideCodeLenses: async (document, token, next) => (await next(document, token))?.map(plainLens),
        resolveCodeLens: async (lens, token, next) => {
          const found = await next(lens, token);
          return found && plainLens(found);
        },
        provideWorkspaceSymbols: async (query, token, next) => {
          const found = await next(query, token);
          for (const one of found ?? []) {
            one.name = plain(oneLine(one.name));
            one.containerName = plain(oneLine(one.containerName));
          }
          return found;
        },
        handleWorkDoneProgress: (token, params) => {
          if (params.kind === "end") this.indexing.delete(token);
          else this.indexing.set(token, { percentage: params.percentage, message: params.message ?? "" });
          this.changed.fire();
        },
      },
    };
    const run = { command, args, options: { cwd: os.homedir() } };
    const client = new QuietClient("funes", "funes", { run, debug: run }, options);
    client.registerFeature(documents);
    client.onDidChangeState((event) => {
      if (client !== this.client) return;
      if (event.newState === State.Running) this.running(client);
      else if (event.newState === State.Starting) this.set("starting");
    });
    client.onNotification("funes/didIndex", () => this.indexed.fire());
    return client;
  }

  private running(client: LanguageClient): void {
    const offered: unknown = client.initializeResult?.capabilities.experimental;
    const protocol = (offered as { funes?: { protocol?: number } } | undefined)?.funes?.protocol;
    const odd = protocol === PROTOCOL ? "" : vscode.l10n.t("The server speaks another protocol ({0}); update it or this extension.", oneLine(String(protocol), 20));
    this.set("running", odd);
  }

  /** What to do when the server has ended by itself. */
  private closed(): CloseAction {
    const now = Date.now();
    this.indexing.clear();
    this.closedAt = [...this.closedAt.filter((at) => now - at < RESTARTS_WITHIN_MS), now];
    if (this.closedAt.length <= MOST_RESTARTS) return CloseAction.Restart;
    this.log.error("The server ended too often and is not started again by itself.");
    this.set("failed", vscode.l10n.t("The server ended too often."));
    return CloseAction.DoNotRestart;
  }

  /** Asks the server.
   * @throws what the server refuses, or that it does not run. */
  async request<Answer>(method: string, params: object, token?: vscode.CancellationToken): Promise<Answer> {
    const client = this.client;
    if (client?.state !== State.Running) throw new Error(this.reason || vscode.l10n.t("The server does not run yet."));
    // A token that is undefined would be taken for a second param.
    return token === undefined ? client.sendRequest<Answer>(method, params) : client.sendRequest<Answer>(method, params, token);
  }

  /** Asks the server for an answer of which parts come first. */
  async stream<Part, Answer>(method: string, params: object, take: (part: Part) => void, token?: vscode.CancellationToken): Promise<Answer> {
    const partialResultToken = `funes-${++this.token}`;
    const parts = this.client?.onProgress(new ProgressType<Part>(), partialResultToken, take);
    try {
      return await this.request<Answer>(method, { ...params, partialResultToken }, token);
    } finally {
      parts?.dispose();
    }
  }

  /** Lets the server do one of its commands. */
  execute<Answer>(command: string, ...args: unknown[]): Promise<Answer> {
    return this.request("workspace/executeCommand", { command, arguments: args });
  }

  private set(state: ServerState, reason = ""): void {
    this.state = state;
    this.reason = reason;
    void vscode.commands.executeCommand("setContext", "funes.state", state);
    this.changed.fire();
  }

  private async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    this.indexing.clear();
    try {
      await client?.dispose(2000);
    } catch {
      // It had not started, or is gone already.
    }
  }

  async close(): Promise<void> {
    await this.stop();
  }

  dispose(): void {
    this.changed.dispose();
    this.indexed.dispose();
    this.log.dispose();
  }
}

function harmless(hover: vscode.Hover): vscode.Hover {
  const contents = hover.contents.map((one) => {
    if (typeof one === "string") return visible(one);
    if (!(one instanceof vscode.MarkdownString)) return one;
    // Pictures would be fetched from wherever a text says.
    const text = new vscode.MarkdownString(visible(one.value).replace(/!(?=\[)/g, "\\!"));
    text.isTrusted = false;
    text.supportHtml = false;
    return text;
  });
  return new vscode.Hover(contents, hover.range);
}

function plainLens(lens: vscode.CodeLens): vscode.CodeLens {
  if (lens.command) lens.command.title = plain(oneLine(lens.command.title));
  return lens;
}
