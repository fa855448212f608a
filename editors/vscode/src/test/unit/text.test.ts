import assert from "node:assert";
import { test } from "node:test";
import * as text from "../../text";

const t = (message: string, ...args: (string | number)[]): string => message.replace(/\{(\d)\}/g, (_, at: string) => String(args[Number(at)]));
const hit = { text: "say */ --> \u202ehi\nand \\", harness: "claude_code", ts: "2026-02-03T08:41:24Z", get: "funes get s t" };

test("control, bidi and invisible characters are shown", () => {
  assert.strictEqual(text.visible("a\u202eb\u001b[31m\u0000\tc\r\nd\re"), "a⟨U+202E⟩b⟨U+001B⟩[31m⟨U+0000⟩\tc\nd⟨U+000D⟩e");
  assert.strictEqual(text.visible("\u{e0041}\u200b\u2066"), "⟨U+E0041⟩⟨U+200B⟩⟨U+2066⟩");
});

test("other text stays as it is", () => {
  for (const one of ["", "naïve 漢字 🦀 العربية עברית", "a\n\tb", "[x](command:y) <b>"]) assert.strictEqual(text.visible(one), one);
});

test("one line is short, and cut between characters", () => {
  assert.strictEqual(text.oneLine("  a\n\n b\tc "), "a b c");
  assert.strictEqual(text.oneLine("🦀".repeat(200), 3), "🦀🦀…");
  assert.strictEqual(Array.from(text.oneLine("x".repeat(1e6))).length, 120);
});

test("icons are not drawn from text", () => assert.strictEqual(text.plain("$(zap) $$(zap)"), "$ (zap) $$ (zap)"));

test("no link is left where links are made of text", () => assert.doesNotMatch(text.unlinked("[x](command:y) [a](b)"), /\]\(/));

test("ages", () => {
  const cases: [number | null | undefined, string][] = [[null, ""], [undefined, ""], [NaN, ""], [-5, "now"], [59, "now"], [60, "1 min"], [3600, "1 h"], [86_400 * 3, "3 d"], [86_400 * 65, "2 mo"], [86_400 * 800, "2 y"]];
  for (const [seconds, want] of cases) assert.strictEqual(text.age(seconds, t), want);
  assert.strictEqual(text.ageOf(0, 7_200_000, t), "2 h");
  assert.strictEqual(text.ageOf(null, 0, t), "");
});

test("what came up again later is said in a few words", () => {
  const now = Date.parse("2026-03-04T00:00:00Z");
  const revisited = { ts: "2026-03-01T00:00:00Z", path: "" };
  assert.strictEqual(text.laterOf({ revisited }, now, t), "came up again · 3 d");
  assert.strictEqual(text.laterOf({ revisited: { ...revisited, path: "src/\u202epump.py" } }, now, t), "came up again · 3 d · src/⟨U+202E⟩pump.py");
  assert.strictEqual(text.laterOf({ revisited: { ts: "no date", path: "" } }, now, t), "came up again");
  for (const none of [{}, { revisited: null }]) assert.strictEqual(text.laterOf(none, now, t), "");
});

test("copies are counted", () => {
  assert.deepStrictEqual(text.copiesOf({ also_in: ["a", "b"], repeats: 3 }, t), ["also in 2 other sessions", "3 more times in this one"]);
  for (const none of [{}, { also_in: [], repeats: 0 }]) assert.deepStrictEqual(text.copiesOf(none, t), []);
});

test("addresses are quoted, and read back", () => {
  assert.strictEqual(text.addressOf({ session: "a/b c", turn: "t'#?" }), "funes:/turn/a%2Fb%20c/t%27%23%3F.md");
  assert.strictEqual(text.addressOf({ session: "s", turn: "" }), "funes:/session/s.md");
  assert.deepStrictEqual(text.placeAt("/turn/a/b/t.md"), { session: "a/b", turn: "t", memory: undefined });
  assert.deepStrictEqual(text.placeAt("/session/s.md"), { session: "s", turn: "", memory: undefined });
  for (const none of ["/file/x.md", "/turn/x.md", "/turn/", ""]) assert.strictEqual(text.placeAt(none), undefined);
});

test("an address names another memory, as the server does", () => {
  const place = { session: "s", turn: "t", memory: "acme/kb" };
  const [path, query] = text.addressOf(place).slice("funes:".length).split("?");
  assert.deepStrictEqual(JSON.parse(Buffer.from(query ?? "", "base64url").toString()), { kind: "turn", memory: "acme/kb" });
  assert.deepStrictEqual(text.placeAt(path ?? "", query), place);
  for (const odd of ["", "%%%", "bm90IGpzb24"]) assert.strictEqual(text.placeAt("/session/s.md", odd)?.memory, undefined);
});

test("a citation quotes, and says where it is from", () => {
  assert.strictEqual(text.citation(hit), "> say */ --> ⟨U+202E⟩hi\n> and \\\n>\n> — claude, 2026-02-03, funes get s t\n");
});

test("nothing in a comment ends it", () => {
  assert.ok(text.comment(hit, "python", "  ").trimEnd().split("\n").every((line) => line.startsWith("  #")));
  assert.ok(text.comment(hit, "c").trimEnd().split("\n").every((line) => line.startsWith("//") && !line.endsWith("\\")));
  assert.strictEqual(text.comment(hit, "html").match(/-->/g)?.length, 1);
  assert.strictEqual(text.comment(hit, "css").match(/\*\//g)?.length, 1);
  assert.ok(text.comment(hit, "sql").startsWith("-- say"));
});

test("a command is typed only when its words are words to every shell", () => {
  assert.strictEqual(text.typed(["claude", "--resume", "78a2ac99-e87e"]), "claude --resume 78a2ac99-e87e");
  for (const bad of ["a; rm -rf /", "$(x)abcd", "a\nbcd", "a b", "`x`", "a|b", "a&b", "'a'", ""]) assert.strictEqual(text.typed(["codex", "resume", bad]), undefined, bad);
  assert.strictEqual(text.typed([]), undefined);
});

test("headings, but not those in fences", () => {
  assert.deepStrictEqual(text.headings("# t\n## a\n```\n## no\n```\n## b\n````\n```\n## no\n````\n## c"), [1, 5, 10]);
});
