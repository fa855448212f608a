/** A language server that does as it is told: of another protocol, slow, broken, or full of evil text. */
import fs from "node:fs";
import { createMessageConnection, ResponseError, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node";

export interface Scenario {
  /** What it says under `experimental.funes`; nothing when it is null. */
  funes?: object | null;
  /** When it dies. */
  dies?: "at once" | "when initialized";
  /** Writes what is no message before it begins. */
  garbage?: boolean;
  /** How many sessions it has. */
  sessions?: number;
  /** The title of one of them. */
  evil?: string;
  answers?: Record<string, unknown>;
  errors?: Record<string, { code: number; message: string; data?: unknown }>;
  /** What is never answered, unless withdrawn. */
  silent?: string[];
}

const scenario = JSON.parse(process.argv[2] ?? "{}") as Scenario & { name: string; log: string };
const { answers = {}, errors = {}, silent = [] } = scenario;

function note(method: string, params: unknown): void {
  fs.appendFileSync(scenario.log, `${JSON.stringify({ method, params })}\n`);
}

const DAY_US = 86_400e6;
const all = Array.from({ length: scenario.sessions ?? 0 }, (_, at) => ({
  session_id: `session-${at}`,
  harness: ["claude_code", "codex", "pi"][at % 3] ?? "",
  cwd: `/work/project-${at % 40}`,
  workdir: "",
  title: at === 1 && scenario.evil ? scenario.evil : `Session number ${at} of many`,
  started_us: 1.79e15 - at * DAY_US / 9,
  ended_us: 1.79e15 - at * DAY_US / 9,
  turns: 10,
}));

function sessions(params: { limit?: number; offset?: number; harness?: string }): unknown {
  const kept = all.filter((one) => !params.harness || one.harness === params.harness);
  return { total: kept.length, sessions: kept.slice(params.offset ?? 0, (params.offset ?? 0) + (params.limit ?? 50)) };
}

const MEMORY = { memory: "local", state: "ready", chunks: 7, words_only: 0, pending_sources: 0, problems: 0, note: "" };
const own: Record<string, (params: never) => unknown> = {
  "funes/sessions": sessions,
  "funes/status": () => ({ ...MEMORY, sessions: all.length, harnesses: { claude_code: all.length } }),
  "funes/recall": () => ({ memory: "local", note: "", legs: {}, hits: [] }),
  "funes/related": () => ({ path: "", total: 0, sessions: [] }),
  shutdown: () => null,
};

function initialized(): unknown {
  const funes = scenario.funes === undefined ? { protocol: 1 } : scenario.funes;
  const capabilities = {
    textDocumentSync: 2,
    hoverProvider: true,
    codeLensProvider: { resolveProvider: false },
    workspaceSymbolProvider: true,
    ...(funes ? { experimental: { funes } } : {}),
  };
  return { capabilities, serverInfo: { name: scenario.name, version: "0" } };
}

note("start", process.pid);
if (scenario.dies === "at once") process.exit(1);
if (scenario.garbage) process.stdout.write("Traceback (most recent call last): nonsense\r\n\r\n");

const connection = createMessageConnection(new StreamMessageReader(process.stdin), new StreamMessageWriter(process.stdout));
connection.onRequest(async (method, params, token) => {
  note(method, params);
  if (method === "initialize" && !silent.includes(method)) return initialized();
  const error = errors[method];
  if (error) return new ResponseError(error.code, error.message, error.data);
  if (silent.includes(method)) {
    await new Promise<void>((go) => token.onCancellationRequested(() => go()));
    note("cancelled", method);
    return new ResponseError(-32800, "withdrawn");
  }
  if (method in answers) return answers[method];
  const answer = own[method];
  return answer ? answer(params as never) : new ResponseError(-32601, `no such method: ${method}`);
});
connection.onNotification((method, params) => {
  if (method === "exit") process.exit(0);
  if (method === "initialized" && scenario.dies === "when initialized") process.exit(1);
  if (method === "odd/progress") void progress(params as { token: string; value: { kind: string } });
  if (method === "odd/notify") void connection.sendNotification("funes/didIndex", { generation: 2, sessions: [] });
});
connection.onClose(() => process.exit(0));
connection.listen();

async function progress(params: { token: string; value: { kind: string } }): Promise<void> {
  if (params.value.kind === "begin") await connection.sendRequest("window/workDoneProgress/create", { token: params.token });
  await connection.sendNotification("$/progress", params);
}
