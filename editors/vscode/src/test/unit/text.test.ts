import assert from "node:assert";
import { test } from "node:test";
import * as text from "../../text";

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

test("ages", () => {
  const cases: [number | null | undefined, string][] = [[null, ""], [undefined, ""], [NaN, ""], [-5, "now"], [59, "now"], [60, "1 min"], [3600, "1 h"], [86_400 * 3, "3 d"], [86_400 * 65, "2 mo"], [86_400 * 800, "2 y"]];
  for (const [seconds, want] of cases) assert.strictEqual(text.age(seconds), want);
  assert.strictEqual(text.ageOf(0, 7_200_000), "2 h");
  assert.strictEqual(text.ageOf(null, 0), "");
});

test("addresses are quoted, and read back", () => {
  assert.strictEqual(text.addressOf("a/b c", "t'#?"), "funes:/turn/a%2Fb%20c/t%27%23%3F.md");
  assert.strictEqual(text.addressOf("s"), "funes:/session/s.md");
  assert.deepStrictEqual(text.partsOf("/turn/a/b/t.md"), { session: "a/b", turn: "t" });
  assert.deepStrictEqual(text.partsOf("/session/s.md"), { session: "s", turn: "" });
  for (const none of ["/file/x.md", "/turn/x.md", "/turn/", ""]) assert.strictEqual(text.partsOf(none), undefined);
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

test("only agents that can go on with a session do, and only for ids that are no options or code", () => {
  assert.deepStrictEqual(text.resumeCommand("claude_code", "78a2ac99-e87e"), ["claude", "--resume", "78a2ac99-e87e"]);
  assert.deepStrictEqual(text.resumeCommand("codex", "019e3f92"), ["codex", "resume", "019e3f92"]);
  for (const id of ["--dangerous", "a; rm -rf /", "$(x)abcd", "a\nbcd", ""]) assert.strictEqual(text.resumeCommand("codex", id), undefined);
  assert.strictEqual(text.resumeCommand("hermes", "abcdef"), undefined);
});

test("files that calls name, each once", () => {
  const calls = ['[tool_use Edit] {"file_path": "/a/b.py", "x": 1}', '{"path":"c \\"d\\".txt"}', "*** Update File: e.rs\n*** Add File: f.rs\n", '{"file_path":"/a/b.py"}', '{"file_path": "/a/\u202eb"}', '{"file_path": "/cut'];
  assert.deepStrictEqual(text.touchedPaths(calls), ["/a/b.py", 'c "d".txt', "e.rs", "f.rs"]);
});

test("headings, but not those in fences", () => {
  assert.deepStrictEqual(text.headings("# t\n## a\n```\n## no\n```\n## b\n````\n```\n## no\n````\n## c"), [1, 5, 10]);
});
