/** With servers that are of another protocol, slow, broken, full, or full of evil text. */
import assert from "node:assert";
import fs from "node:fs";
import * as vscode from "vscode";
import type { Parts } from "../../extension";
import { answering, inState, Odd, partsNow, picture, rowsOf, UNSEEN, until, wordsOf } from "./help";
import type { Scenario } from "./server";

const EVIL = "[zap](command:workbench.action.quit) <b>x</b><script>alert(1)</script> ![p](http://127.0.0.1:9/p.png) $(zap) \u202egnp\u202c \u001b[31m\u0007\u0000 \u2066z\u2069";

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

suite("funes, with odd servers", () => {
  let parts: Parts;
  let settings: string;

  suiteSetup(async () => {
    parts = await partsNow("running");
    settings = fs.readFileSync(process.env["FUNES_TEST_MACHINE"] ?? "", "utf8");
  });

  suiteTeardown(async () => {
    fs.writeFileSync(process.env["FUNES_TEST_MACHINE"] ?? "", settings);
    await until(() => parts.connection.client?.initializeResult?.serverInfo?.name === "funes-ls");
  });

  const odd = (scenario: Scenario): Odd => new Odd(parts, scenario);
  const icon = (): string => parts.status.item.text;
  const tooltip = (): string => (typeof parts.status.item.tooltip === "string" ? parts.status.item.tooltip : "");

  suite("status", () => {
    let server: Odd;

    test("a changed command starts the server that it names", async () => {
      server = await odd({ silent: ["funes/recall"], sessions: 3 }).start();
      assert.strictEqual(parts.connection.reason, "");
      await until(() => /3 sessions, 7 passages in local/.test(tooltip()));
      assert.match(icon(), /^\$\(history\) funes$/);
      assert.match(parts.status.language.text, /3 sessions/);
    });

    test("indexing shows its progress, and ends", async () => {
      const token = "work-1";
      await server.does("progress", { token, value: { kind: "begin", title: "Indexing", message: "words", percentage: 0 } });
      await until(() => /indexing 0%/.test(icon()));
      await server.does("progress", { token, value: { kind: "report", message: "vectors", percentage: 40 } });
      await until(() => /sync~spin.*indexing 40%/.test(icon()));
      assert.match(tooltip(), /vectors/);
      assert.ok(parts.status.language.busy);
      await server.does("progress", { token, value: { kind: "end" } });
      await until(() => !/indexing/.test(icon()));
      assert.ok(!parts.status.language.busy);
    });

    test("recall can be stopped, the server hears of it, and it can be asked again", async () => {
      const asked = parts.recall.ask("anything");
      await until(() => server.told("funes/recall").length === 1);
      assert.match(String(parts.recall.view.message), /Looking/);
      await vscode.commands.executeCommand("funes.recall.cancel");
      await asked;
      assert.strictEqual(parts.recall.view.message, "Stopped.");
      await until(() => server.told("cancelled").length === 1);
      const again = parts.recall.ask("anything else");
      await until(() => server.told("funes/recall").length === 2);
      parts.recall.cancel();
      await again;
    });

    test("nothing found is said, without an error", async () => {
      await odd({}).start();
      const asked = await answering({}, async () => {
        assert.deepStrictEqual(await parts.recall.ask("of nothing"), []);
      });
      assert.deepStrictEqual(asked, []);
      assert.strictEqual(parts.recall.view.message, "Nothing of this was found.");
    });

    test("a weak match, copies and what came later are said, and what came later is opened", async () => {
      const hit = {
        ...{ rank: 1, session_id: "s1", turn_uuid: "t1", ts: "2026-01-01T00:00:00Z", harness: "codex", workdir: "", cwd: "/p", title: "Pumps" },
        ...{ role: "user", block_type: "text", tool_name: null, text: "the valve sticks", neighbors: [], get: "funes get s1 t1", memory: "local" },
        ...{ also_in: ["s2", "s3"], repeats: 1, revisited: { how: "passage", session_id: "s4", turn_uuid: "t9", ts: "2026-02-01T00:00:00Z", path: "", get: "" } },
      };
      const answer = { memory: "local", note: "One thing to know.", legs: {}, hits: [hit], weak: true };
      await odd({ answers: { "funes/recall": answer } }).start();
      await parts.recall.ask("valves");
      assert.match(String(parts.recall.view.message), /^Weak match: .* One thing to know\.$/);
      const [row] = parts.recall.getChildren();
      assert.ok(row);
      const { description, tooltip, read } = wordsOf(parts.recall.getTreeItem(row));
      assert.match(description, /came up again · /);
      for (const said of [/came up again/, /also in 2 other sessions/, /1 more times in this one/]) {
        assert.match(tooltip, said);
        assert.match(read, said);
      }
      const [later] = parts.recall.getChildren(row);
      assert.ok(later?.kind === "later");
      const place = parts.recall.getTreeItem(later);
      assert.strictEqual(place.label, "Said again later");
      assert.match(place.accessibilityInformation?.label ?? "", /^Said again later, /);
      assert.match(JSON.stringify(place.command?.arguments), /turn\/s4\/t9/);
      assert.deepStrictEqual(parts.recall.getChildren(later), []);
    });

    test("words only, and what to know, are said", async () => {
      const memory = { memory: "local", state: "ready", sessions: 2, chunks: 9, words_only: 9, problems: 0, note: "There is no model." };
      await odd({ answers: { "funes/status": memory } }).start();
      await until(() => /words only/.test(icon()));
      assert.match(tooltip(), /There is no model/);
    });

    test("an engine that is out of reach is said", async () => {
      await odd({ errors: { "funes/status": { code: -32803, message: "The engine cannot be reached.", data: { kind: "engine_down", hint: "Run funes engine logs." } } } }).start();
      await until(() => /offline/.test(icon()));
      assert.match(tooltip(), /cannot be reached.*Run funes engine logs/);
      assert.strictEqual(parts.status.item.command, "funes.log");
    });
  });

  suite("protocols", () => {
    const cases: [string, object | null][] = [["older", null], ["newer", { protocol: 99, methods: [] }], ["strange", { protocol: "\u202e$(zap)" }]];
    for (const [name, funes] of cases) {
      test(`a server of ${name} protocol is used as far as it goes, and said so once, in the status item`, async () => {
        const asked = await answering({}, async () => {
          await odd({ funes, errors: { "funes/related": { code: -32601, message: "no such method: funes/related" } }, sessions: 2 }).start();
          assert.match(parts.connection.reason, /another protocol/);
          assert.match(icon(), /warning/);
          assert.doesNotMatch(tooltip(), UNSEEN);
          await parts.sessions.read(true);
          assert.strictEqual(parts.sessions.total, 2);
          await parts.related.read(true);
          await parts.recall.ask("anything");
        });
        assert.deepStrictEqual(asked, []);
      });
    }

    test("a method that it does not know is a message to who asked, no more", async () => {
      await odd({}).start();
      const [asked] = await answering({}, () => vscode.commands.executeCommand("funes.update"));
      assert.match(String(asked), /^message: Funes: .*no such method/i);
    });

    test("answers of the wrong shape break nothing", async () => {
      const answers = { "funes/recall": null, "funes/sessions": [], "funes/status": "ready", "funes/related": { sessions: "many" }, "textDocument/hover": 7 };
      await odd({ answers }).start();
      await answering({}, async () => {
        await parts.recall.ask("anything");
        await parts.sessions.read(true);
        await parts.related.read(true);
        await parts.status.read();
      });
      rowsOf(parts.recall);
      rowsOf(parts.sessions);
      rowsOf(parts.related);
      assert.strictEqual(parts.connection.state, "running");
    });
  });

  suite("crashes", () => {
    test("one that dies whenever it is asked to begin is started five times, and no more by itself", async () => {
      const asked = await answering({}, async () => {
        const server = await odd({ dies: "when initialized" }).start("failed");
        await until(() => server.told("start").length === 5);
        assert.match(icon(), /error/);
        assert.strictEqual(parts.status.item.command, "funes.log");
        assert.strictEqual(parts.status.language.command?.command, "funes.log");
        await vscode.commands.executeCommand("funes.log");
        assert.strictEqual(server.told("start").length, 5);
      });
      assert.deepStrictEqual(asked, []);
    });

    test("one that dies at once is not started for ever either", async () => {
      const asked = await answering({}, async () => {
        const server = await odd({ dies: "at once" }).start("failed");
        const count = server.told("start").length;
        assert.ok(count >= 1 && count <= 5, String(count));
        await until(() => parts.connection.state === "failed");
        assert.match(icon(), /error/);
      });
      assert.deepStrictEqual(asked, []);
    });

    test("one that writes what is no message goes on", async () => {
      await odd({ garbage: true, sessions: 2 }).start();
      await parts.sessions.read(true);
      assert.strictEqual(parts.sessions.total, 2);
    });

    test("a program that never answers is given up, and another is then taken", async () => {
      const { patienceMs } = parts.connection;
      parts.connection.patienceMs = 1000;
      const server = odd({ silent: ["initialize"] });
      const asked = await answering({}, () => server.start("failed"));
      parts.connection.patienceMs = patienceMs;
      assert.deepStrictEqual(asked, []);
      assert.match(tooltip(), /does not answer/);
      const pid = Number(server.told("start")[0]);
      await until(() => !isAlive(pid));
      await odd({}).start();
      await vscode.commands.executeCommand("funes.restart");
      await inState(parts, "running");
    });
  });

  suite("very many sessions", () => {
    const MANY = 5000;
    let server: Odd;

    suiteSetup(async () => {
      server = await odd({ sessions: MANY }).start();
    });

    const timed = async (run: () => Promise<unknown>): Promise<number> => {
      const began = performance.now();
      await run();
      rowsOf(parts.sessions);
      return performance.now() - began;
    };

    test("a new server's sessions take the place of the old one's", async () => {
      await vscode.commands.executeCommand("workbench.view.extension.funes");
      await until(() => parts.sessions.view.visible && parts.sessions.sessions[0]?.title === "Session number 0 of many");
    });

    test("the first page is there about as fast as that of a few", async () => {
      await parts.sessions.setFilter({ harness: "nobody" });
      const few = await timed(() => parts.sessions.read(true));
      const first = await timed(() => parts.sessions.setFilter({}));
      console.log(`first rows of ${MANY} sessions after ${first.toFixed(0)} ms, of none after ${few.toFixed(0)} ms`);
      assert.strictEqual(parts.sessions.total, MANY);
      assert.strictEqual(parts.sessions.sessions.length, 200);
      assert.ok(first < 300 + 20 * few, `${first} ms`);
      const rows = rowsOf(parts.sessions);
      assert.strictEqual(rows.filter((one) => one.node.kind === "session").length, 200);
      assert.match(wordsOf(rows.at(-1)?.item ?? assert.fail()).label, /4800 older/);
    });

    test("page by page all are reached, each once, in any grouping", async () => {
      const before = server.told("funes/sessions").length;
      while (parts.sessions.sessions.length < MANY) {
        const had = parts.sessions.sessions.length;
        await vscode.commands.executeCommand("funes.sessions.more");
        assert.ok(parts.sessions.sessions.length > had);
      }
      assert.strictEqual(server.told("funes/sessions").length - before, MANY / 200 - 1);
      for (const by of ["day", "project", "harness", "none"] as const) {
        const began = performance.now();
        parts.sessions.group(by);
        const rows = rowsOf(parts.sessions).filter((one) => one.node.kind === "session");
        const took = performance.now() - began;
        assert.strictEqual(new Set(rows.map((one) => String((one.item.command?.arguments as vscode.Uri[] | undefined)?.[0]))).size, MANY);
        assert.ok(took < 3000, `${by}: ${took} ms`);
      }
      parts.sessions.group("day");
    });

    test("changes that come in a burst are looked at once", async () => {
      const before = server.told("funes/sessions").length;
      for (let count = 0; count < 20; count++) await server.does("notify");
      await until(() => server.told("funes/sessions").length > before);
      await new Promise((go) => setTimeout(go, 700));
      assert.ok(server.told("funes/sessions").length - before <= 3);
    });

    test("they are filtered by harness, and by all again", async () => {
      await parts.status.read();
      const pick = (label: string) => (): string => label;
      await answering({ pick: pick("claude") }, () => vscode.commands.executeCommand("funes.sessions.filter"));
      assert.ok(parts.sessions.sessions.length > 0 && parts.sessions.sessions.every((one) => one.harness === "claude_code"));
      assert.match(String(parts.sessions.view.description), /claude/);
      const asked = await answering({ pick: pick("Words of the titles…"), input: "number 3" }, () => vscode.commands.executeCommand("funes.sessions.filter"));
      assert.strictEqual(asked.length, 2);
      assert.deepStrictEqual(parts.sessions.filter, { harness: "claude_code", title: "number 3" });
      await answering({ pick: pick("All") }, () => vscode.commands.executeCommand("funes.sessions.filter"));
      assert.strictEqual(parts.sessions.total, MANY);
    });
  });

  suite("evil text", () => {
    const session = { session_id: EVIL, harness: EVIL, cwd: EVIL, workdir: EVIL, title: EVIL, started_us: 1, ended_us: 1, turns: 1, relation: EVIL, last_us: 1, passage: { text: EVIL, turn_uuid: EVIL } };
    const near = { session_id: EVIL, turn_uuid: EVIL, role: EVIL, block_type: EVIL, text: EVIL };
    const hit = { ...session, rank: 1, turn_uuid: EVIL, ts: EVIL, age_s: 5, role: EVIL, block_type: EVIL, tool_name: EVIL, text: EVIL, neighbors: [near], get: EVIL, memory: EVIL, also_in: [EVIL], repeats: 2, revisited: { how: EVIL, session_id: EVIL, turn_uuid: EVIL, ts: EVIL, path: EVIL } };
    const everywhere: Scenario = {
      funes: { protocol: EVIL },
      answers: {
        "funes/recall": { memory: "local", note: EVIL, legs: {}, hits: [hit, { ...hit, title: "" }] },
        "funes/sessions": { total: 9, sessions: [session, { ...session, title: "" }] },
        "funes/related": { path: EVIL, total: 1, sessions: [session] },
        "funes/status": { memory: EVIL, state: EVIL, sessions: 1, chunks: 1, words_only: 1, problems: 0, note: EVIL, harnesses: { [EVIL]: 1 } },
        "funes/document": { uri: "", line: 0, text: `# ${EVIL}\n\n## user\n\n${EVIL}\n` },
        "funes/get": { found: true, session_id: EVIL, harness: EVIL, cwd: EVIL, files: [EVIL, "/etc/hosts"], reopen: ["claude", "--resume", EVIL] },
        "textDocument/hover": { contents: { kind: "markdown", value: `**claude** · ${EVIL}` } },
        "textDocument/codeLens": [{ range: { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } }, command: { title: EVIL, command: "funes.showRelated" } }],
        "workspace/symbol": [{ name: EVIL, kind: 24, containerName: EVIL, location: { uri: "funes:/session/x.md", range: { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } } } }],
      },
      errors: { "funes/index": { code: -32803, message: EVIL, data: { hint: EVIL } } },
    };

    suiteSetup(async () => {
      await vscode.window.showTextDocument(vscode.Uri.file(process.env["FUNES_TEST_FILE"] ?? ""));
      await odd(everywhere).start();
      await parts.recall.ask("anything");
      await Promise.all([parts.sessions.setFilter({}), parts.related.read(true), parts.status.read()]);
    });

    test("every row of every view is plain text, and is read aloud as such", () => {
      parts.recall.grouped = true;
      const rows = [...rowsOf(parts.recall), ...rowsOf(parts.sessions), ...rowsOf(parts.related)];
      parts.recall.grouped = false;
      const kinds = new Set(rows.map((one) => one.node.kind));
      assert.deepStrictEqual([...kinds].sort(), ["group", "hit", "later", "more", "neighbor", "passage", "session"]);
      for (const { item } of rows) {
        const { label, tooltip: tip, description, read } = wordsOf(item);
        assert.ok(label.trim() && read.trim(), `${label}|${read}`);
        for (const text of [label, tip, description, read]) assert.doesNotMatch(text, UNSEEN);
        assert.ok(Array.from(label).length <= 120 && Array.from(description).length <= 200, label);
        assert.ok(!item.command || ["vscode.open", "funes.sessions.more"].includes(item.command.command));
        for (const target of (item.command?.arguments ?? []) as vscode.Uri[]) assert.strictEqual(target.scheme, "funes");
      }
    });

    test("titles, messages and items of the status draw no icons and lead nowhere", () => {
      const { recall, related, sessions, status } = parts;
      const said = [recall, related, sessions].flatMap(({ view }) => [view.message, view.description, view.title]);
      for (const text of [...said, status.item.tooltip, status.item.accessibilityInformation?.label]) assert.ok(text === undefined || (typeof text === "string" && !UNSEEN.test(text)));
      assert.strictEqual(icon().match(/\$\(/g)?.length, 1);
      assert.doesNotMatch(parts.status.language.text, /\$\(/);
    });

    test("hovers, lenses and symbols have no command, no HTML, no picture, no icon", async () => {
      const document = await vscode.workspace.openTextDocument(process.env["FUNES_TEST_FILE"] ?? "");
      await vscode.window.showTextDocument(document);
      const hovers = await vscode.commands.executeCommand<vscode.Hover[]>("vscode.executeHoverProvider", document.uri, new vscode.Position(0, 0));
      const contents = hovers.flatMap((one) => one.contents) as vscode.MarkdownString[];
      assert.ok(contents.some((one) => one.value.includes("zap")));
      for (const one of contents) {
        assert.ok(!one.isTrusted && !one.supportHtml && !one.supportThemeIcons);
        assert.doesNotMatch(one.value, UNSEEN);
        assert.doesNotMatch(one.value, /(?<!\\)!\[/);
      }
      const lenses = await vscode.commands.executeCommand<vscode.CodeLens[]>("vscode.executeCodeLensProvider", document.uri, 5);
      const symbols = await vscode.commands.executeCommand<vscode.SymbolInformation[]>("vscode.executeWorkspaceSymbolProvider", "x");
      const titles = [...lenses.map((one) => one.command?.title ?? ""), ...symbols.flatMap((one) => [one.name, one.containerName])];
      assert.ok(titles.filter((one) => one.includes("zap")).length >= 3, titles.join());
      for (const one of titles) assert.doesNotMatch(one, new RegExp(`${UNSEEN.source}|\\$\\(`));
    });

    test("documents are readable, and lead nowhere", async () => {
      const document = await vscode.workspace.openTextDocument(vscode.Uri.parse("funes:/session/evil.md"));
      assert.match(document.getText(), /⟨U\+202E⟩gnp/);
      assert.doesNotMatch(document.getText(), UNSEEN);
      const links = await vscode.commands.executeCommand<vscode.DocumentLink[]>("vscode.executeLinkProvider", document.uri);
      for (const one of links) assert.notStrictEqual(one.target?.scheme, "command");
    });

    test("an error is told without links", async () => {
      const [told] = await answering({}, () => vscode.commands.executeCommand("funes.update"));
      assert.ok(told?.startsWith("message: Funes: "), told);
      assert.doesNotMatch(String(told), UNSEEN);
      assert.doesNotMatch(String(told), /\]\(/);
    });

    test("no shell sees an id that is more than a word, no picker a file that is not there", async () => {
      const [row] = parts.recall.getChildren();
      const reopened = await answering({ message: (_, __, choices) => choices[0] }, () => vscode.commands.executeCommand("funes.reopen", row));
      assert.deepStrictEqual(reopened.map((one) => /cannot go on/.test(one)), [true]);
      const touched = await answering({}, () => vscode.commands.executeCommand("funes.openTouched", row));
      assert.deepStrictEqual(touched, ["pick: Files it touched: hosts"]);
    });

    test("filters show it as text", async () => {
      const [related] = await answering({}, () => vscode.commands.executeCommand("funes.related.filter"));
      const [sessions] = await answering({}, () => vscode.commands.executeCommand("funes.sessions.filter"));
      for (const one of [related, sessions]) {
        assert.match(String(one), /zap/);
        assert.doesNotMatch(String(one), new RegExp(`${UNSEEN.source}|\\$\\(`));
      }
    });

    test("a person sees it as it is", async () => {
      await vscode.commands.executeCommand("workbench.view.extension.funes");
      await picture("evil", "<script>");
    });
  });
});
