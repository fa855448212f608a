/** Text of sessions, made harmless and short. Nothing here knows the editor. */

const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** Returns text with control, bidi and invisible characters shown as their numbers; LF and tab stay. */
export function visible(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(UNSEEN, (one) => {
    const code = one.codePointAt(0) ?? 0;
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/** Returns the beginning of text in one line. */
export function oneLine(text: string, most = 120): string {
  // Only a beginning is looked at: a passage may be long.
  const line = visible(text.slice(0, most * 8)).replace(/\s+/g, " ").trim();
  const chars = Array.from(line);
  return chars.length > most ? `${chars.slice(0, most - 1).join("")}…` : line;
}

/** Returns text in which no `$(icon)` is left, for places that draw icons. */
export function plain(text: string): string {
  return text.replaceAll("$(", "$ (");
}

const UNITS: [string, number][] = [
  ["y", 31_557_600],
  ["mo", 2_629_800],
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
];

/** Returns how long ago something was, in one short word; "" when it is not known. */
export function age(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "";
  for (const [unit, length] of UNITS) {
    if (seconds >= length) return `${Math.floor(seconds / length)} ${unit}`;
  }
  return "now";
}

/** Returns the age of a time in microseconds. */
export function ageOf(us: number | null | undefined, nowMs: number): string {
  return us === null || us === undefined ? "" : age(nowMs / 1000 - us / 1e6);
}

/** Returns the word for a harness: `claude_code` is `claude`. */
export function harnessWord(harness: string): string {
  return oneLine(harness === "claude_code" ? "claude" : harness, 24);
}

/** Returns the codicon of a harness. */
export function harnessIcon(harness: string): string {
  const icons: Record<string, string> = {
    claude: "sparkle",
    codex: "terminal",
    pi: "symbol-constant",
    hermes: "mail",
  };
  return icons[harnessWord(harness)] ?? "comment-discussion";
}

function quoted(id: string): string {
  return encodeURIComponent(id).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Returns the address of a turn, or of a session when there is no turn. */
export function addressOf(session: string, turn = ""): string {
  return turn ? `funes:/turn/${quoted(session)}/${quoted(turn)}.md` : `funes:/session/${quoted(session)}.md`;
}

/** Returns which session and turn an address is about; nothing when it is about neither. */
export function partsOf(path: string): { session: string; turn: string } | undefined {
  const found = /^\/(turn|session)\/(.+)\.md$/.exec(path);
  if (!found?.[2]) return undefined;
  const at = found[2].lastIndexOf("/");
  if (found[1] === "session") return { session: found[2], turn: "" };
  return at < 1 ? undefined : { session: found[2].slice(0, at), turn: found[2].slice(at + 1) };
}

export interface Cited {
  text: string;
  harness: string;
  ts: string | null;
  get: string;
}

/** Returns a passage as a quotation with where it is from. */
export function citation(hit: Cited): string {
  const quote = visible(hit.text).trimEnd().split("\n").map((line) => `> ${line}`.trimEnd());
  const from = [harnessWord(hit.harness), (hit.ts ?? "").slice(0, 10), oneLine(hit.get, 300)];
  return `${quote.join("\n")}\n>\n> — ${from.filter(Boolean).join(", ")}\n`;
}

const BLOCK: Record<string, [string, string]> = { html: ["<!--", "-->"], xml: ["<!--", "-->"], markdown: ["<!--", "-->"], css: ["/*", "*/"] };
const HASH = /^(python|shellscript|ruby|perl|r|yaml|toml|makefile|dockerfile|julia|elixir|powershell|coffeescript|ini|properties)$/;
const DASH = /^(sql|lua|haskell|elm)$/;

/** Returns a citation as a comment of a language; nothing in it can end the comment. */
export function comment(hit: Cited, language: string, indent = ""): string {
  const lines = citation(hit).trimEnd().split("\n").map((line) => line.replace(/^> ?/, ""));
  const block = BLOCK[language];
  if (block) {
    const inside = lines.map((line) => indent + line.replaceAll("--", "- -").replaceAll("*/", "* /"));
    return [`${indent}${block[0]}`, ...inside, `${indent}${block[1]}`, ""].join("\n");
  }
  const mark = HASH.test(language) ? "#" : DASH.test(language) ? "--" : "//";
  // A backslash at the end of a line would go on in C.
  return lines.map((line) => `${indent}${mark} ${line.replace(/\\+$/, "")}`.trimEnd()).join("\n") + "\n";
}

const RESUME: Record<string, string[]> = { claude: ["claude", "--resume"], codex: ["codex", "resume"] };

/** Returns the command that goes on with a session; nothing for agents, or ids, that cannot. */
export function resumeCommand(harness: string, session: string): string[] | undefined {
  const words = RESUME[harnessWord(harness)];
  return words && /^[A-Za-z0-9][A-Za-z0-9_-]{3,80}$/.test(session) ? [...words, session] : undefined;
}

/** Returns the paths that a session's tool calls name, each once. */
export function touchedPaths(texts: readonly string[]): string[] {
  const found = new Set<string>();
  for (const text of texts) {
    for (const match of text.matchAll(/"(?:file_path|path|notebook_path|filePath)"\s*:\s*("(?:[^"\\]|\\.)*")/g)) {
      try {
        const path: unknown = JSON.parse(match[1] ?? '""');
        if (typeof path === "string" && path && visible(path) === path) found.add(path);
      } catch {
        // A call that was cut short.
      }
    }
    for (const match of text.matchAll(/\*\*\* (?:Add|Update) File: ([^\n\\"]+)/g)) found.add((match[1] ?? "").trim());
  }
  return [...found];
}

/** Returns the lines (from 0) at which parts of a document begin, each a turn or a hit. */
export function headings(text: string): number[] {
  const found: number[] = [];
  let fence = "";
  text.split("\n").forEach((line, number) => {
    const ticks = /^`{3,}/.exec(line)?.[0] ?? "";
    if (ticks && (!fence || (ticks.length >= fence.length && line.trim() === ticks))) fence = fence ? "" : ticks;
    else if (!fence && line.startsWith("## ")) found.push(number);
  });
  return found;
}
