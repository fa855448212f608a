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

/** Returns the beginning of text in one line; nothing of what is no text, as servers of other versions may answer. */
export function oneLine(given: unknown, most = 120): string {
  const text = typeof given === "string" ? given : "";
  // Only a beginning is looked at: a passage may be long.
  const line = visible(text.slice(0, most * 8)).replace(/\s+/g, " ").trim();
  const chars = Array.from(line);
  return chars.length > most ? `${chars.slice(0, most - 1).join("")}…` : line;
}

/** Returns text in which no `$(icon)` is left, for places that draw icons. */
export function plain(text: string): string {
  return text.replaceAll("$(", "$ (");
}

/** Returns text in which no `[words](address)` is left, for places that make links of it. */
export function unlinked(text: string): string {
  return text.replaceAll("](", "] (");
}

/** Says a text of ours in the language of the editor. */
export type Translate = (message: string, ...args: (string | number)[]) => string;

/** Returns how long ago something was, in one short word; "" when it is not known. */
export function age(seconds: number | null | undefined, t: Translate): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "";
  const whole = (unit: number): number => Math.floor(seconds / unit);
  if (seconds >= 31_557_600) return t("{0} y", whole(31_557_600));
  if (seconds >= 2_629_800) return t("{0} mo", whole(2_629_800));
  if (seconds >= 86_400) return t("{0} d", whole(86_400));
  if (seconds >= 3_600) return t("{0} h", whole(3_600));
  return seconds >= 60 ? t("{0} min", whole(60)) : t("now");
}

/** Returns the age of a time in microseconds. */
export function ageOf(us: number | null | undefined, nowMs: number, t: Translate): string {
  return us === null || us === undefined ? "" : age(nowMs / 1000 - us / 1e6, t);
}

/** What is known of a passage beside what it says. */
export interface Known {
  also_in?: readonly string[];
  repeats?: number;
  revisited?: { ts: string; path: string } | null;
}

/** Returns where the subject of a passage came up again, in a few words; "" where that is not known. */
export function laterOf(hit: Known, nowMs: number, t: Translate): string {
  if (!hit.revisited) return "";
  const about = [age((nowMs - Date.parse(hit.revisited.ts)) / 1000, t), oneLine(hit.revisited.path, 60)].filter(Boolean);
  return [t("came up again"), ...about].join(" · ");
}

/** Returns how often a passage stands elsewhere, in a few words for each kind of place. */
export function copiesOf(hit: Known, t: Translate): string[] {
  const others = hit.also_in?.length ?? 0;
  const repeats = hit.repeats ?? 0;
  return [others > 0 ? t("also in {0} other sessions", others) : "", repeats > 0 ? t("{0} more times in this one", repeats) : ""].filter(Boolean);
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

/** A turn, or a session when there is no turn; of a memory when it is not the one that is asked by itself. */
export interface Place {
  session: string;
  turn: string;
  memory?: string | undefined;
}

/** Returns the address of a place. */
export function addressOf({ session, turn, memory }: Place): string {
  const kind = turn ? "turn" : "session";
  const token = memory ? `?${Buffer.from(JSON.stringify({ kind, memory })).toString("base64url")}` : "";
  return turn ? `funes:/turn/${quoted(session)}/${quoted(turn)}.md${token}` : `funes:/session/${quoted(session)}.md${token}`;
}

/** Returns which place an address is about; nothing when it is about none. */
export function placeAt(path: string, query = ""): Place | undefined {
  const found = /^\/(turn|session)\/(.+)\.md$/.exec(path);
  if (!found?.[2]) return undefined;
  const at = found[2].lastIndexOf("/");
  const memory = memoryOf(query);
  if (found[1] === "session") return { session: found[2], turn: "", memory };
  return at < 1 ? undefined : { session: found[2].slice(0, at), turn: found[2].slice(at + 1), memory };
}

function memoryOf(token: string): string | undefined {
  try {
    const { memory } = JSON.parse(Buffer.from(token, "base64url").toString()) as { memory?: unknown };
    return typeof memory === "string" ? memory : undefined;
  } catch {
    return undefined;
  }
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

/** Returns a command as it is typed; nothing when a shell could read more into it than its words. */
export function typed(words: readonly string[]): string | undefined {
  return words.length > 0 && words.every((word) => /^[A-Za-z0-9_@%+=:,./-]+$/.test(word)) ? words.join(" ") : undefined;
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
