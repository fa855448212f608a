/** Ask, and what can be done with a session: always after consent, to whom and with what is said before. */
import assert from "node:assert";
import fs from "node:fs";
import path from "node:path";
import * as vscode from "vscode";
import type { Parts } from "../../extension";
import { answering, partsNow, picture, until, UNSEEN } from "./help";

const QUESTION = "why did we give up five retry attempts";
const AGENT = process.env["FUNES_TEST_AGENT"] ?? "";

suite("funes, with an agent", () => {
  let parts: Parts;

  suiteSetup(async () => {
    parts = await partsNow("running");
  });

  setup(async () => {
    for (const name of ["prompt.txt", "go"]) fs.rmSync(path.join(AGENT, name), { force: true });
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
  });

  const sent = (): string | undefined => (fs.existsSync(path.join(AGENT, "prompt.txt")) ? fs.readFileSync(path.join(AGENT, "prompt.txt"), "utf8") : undefined);
  const goOn = (): void => fs.writeFileSync(path.join(AGENT, "go"), "");
  const shown = (): vscode.TextDocument | undefined => vscode.window.visibleTextEditors.map((one) => one.document).find((one) => one.uri.scheme === "funes-answer");
  const ask = (): Thenable<unknown> => vscode.commands.executeCommand("funes.ask");
  const send = (_: string, __: string, choices: string[]): string | undefined => choices.find((one) => one === "Send");
  const claude = (): string => "Claude Code";

  suite("ask", () => {
    test("the agents that are here are to choose from; what goes to whom is said before; nothing goes without consent", async () => {
      const asked = await answering({ input: QUESTION, pick: claude }, ask);
      const [input, pick, modal] = asked;
      assert.strictEqual(asked.length, 3, asked.join("\n"));
      assert.match(String(input), /Nothing is sent before you have agreed/);
      assert.strictEqual(pick, "pick: Which agent answers?: Claude Code");
      assert.match(String(modal), /^modal: .*: \d+ passages of past sessions \(\d+ characters\) go to Claude Code on this machine, and from there to whoever runs its model/);
      assert.strictEqual(sent(), undefined);
      assert.strictEqual(shown(), undefined);
    });

    test("nothing is sent without an agent, or without a question", async () => {
      assert.strictEqual((await answering({ input: QUESTION }, ask)).length, 2);
      assert.strictEqual((await answering({ input: "  " }, ask)).length, 1);
      assert.strictEqual((await answering({}, ask)).length, 1);
      assert.strictEqual(sent(), undefined);
    });

    test("what is sent can be read first, and is then not sent by itself", async () => {
      let count = 0;
      const asked = await answering({ input: QUESTION, pick: claude, message: (_, __, choices) => (count++ === 0 ? choices[1] : undefined) }, ask);
      assert.match(String(asked.at(-1)), /^message: Send this to Claude Code\?/);
      assert.match(shown()?.getText() ?? "", /Answer the question below[^]*Question: why did we give up/);
      assert.strictEqual(sent(), undefined);
    });

    test("the answer comes piece by piece; its sources are links; a made-up source is named", async () => {
      let done = false;
      const asking = answering({ input: QUESTION, pick: claude, message: send }, ask).then(() => (done = true));
      const document = await until(() => (shown()?.getText().includes("Three of them") ? shown() : undefined));
      assert.ok(!done, "the first piece is shown before the last one is there");
      assert.deepStrictEqual(await vscode.commands.executeCommand("vscode.executeLinkProvider", document.uri), []);
      goOn();
      await asking;
      assert.match(sent() ?? "", /Question: why did we give up five retry attempts/);
      const text = await until(() => (document.getText().includes("Sources\n") ? document.getText() : undefined));
      assert.ok(text.startsWith(`${QUESTION}\n\n`), text);
      assert.match(text, /The answer names sessions that it was not given: 00000000-1111-4222-8333-444455556666/);
      assert.doesNotMatch(text, UNSEEN);
      const links = await until(async () => {
        const found = await vscode.commands.executeCommand<vscode.DocumentLink[]>("vscode.executeLinkProvider", document.uri);
        return found.length > 0 ? found : undefined;
      });
      for (const one of links) {
        assert.match(document.getText(one.range), /^\[\d+\] (claude|codex|pi|hermes) · \d{4}-\d\d-\d\d · /);
        assert.match(one.target?.path ?? "", /^\/turn\//);
      }
      assert.ok(links.some((one) => !document.getText(one.range).endsWith("(not cited)")));
      await picture("vscode-ask", "(not cited)");
      await vscode.commands.executeCommand("vscode.open", links[0]?.target);
      const turn = await until(() => vscode.window.visibleTextEditors.map((one) => one.document).find((one) => one.uri.scheme === "funes"));
      assert.match(turn.getText(), /\n## /);
    });

    test("an answer cannot be edited", async () => {
      let count = 0;
      await answering({ input: QUESTION, pick: claude, message: (_, __, choices) => (count++ === 0 ? choices[1] : undefined) }, ask);
      const editor = await until(() => vscode.window.visibleTextEditors.find((one) => one.document.uri.scheme === "funes-answer"));
      const before = editor.document.getText();
      await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), "x")).then(undefined, () => false);
      assert.strictEqual(editor.document.getText(), before);
    });

    test("an agent that fails is said in the document", async () => {
      await answering({ input: `${QUESTION} FAIL`, pick: claude, message: send }, ask);
      await until(() => /not logged in/.test(shown()?.getText() ?? ""));
    });
  });

  suite("sessions", () => {
    interface Terminal {
      options: { name?: string; cwd?: string };
      typed: string[];
    }

    /** Reopens the session of a row; returns what was asked and what a terminal was given. */
    async function reopened(row: unknown, consent: boolean): Promise<{ asked: string[]; terminals: Terminal[] }> {
      const terminals: Terminal[] = [];
      const window = vscode.window as unknown as { createTerminal: unknown };
      const kept = window.createTerminal;
      window.createTerminal = (options: Terminal["options"]): object => {
        const terminal: Terminal = { options, typed: [] };
        terminals.push(terminal);
        return { show: () => undefined, sendText: (text: string) => terminal.typed.push(text) };
      };
      try {
        const asked = await answering({ message: (_, __, choices) => (consent ? choices[0] : undefined) }, () => vscode.commands.executeCommand("funes.reopen", row));
        return { asked, terminals };
      } finally {
        window.createTerminal = kept;
      }
    }

    const rowOfHarness = async (harness: string): Promise<unknown> => {
      parts.sessions.group("none");
      await parts.sessions.setFilter({ harness });
      const rows = parts.sessions.getChildren().filter((one) => one.kind === "session" && !one.session.subagent);
      assert.ok(rows[0], harness);
      return rows[0];
    };

    for (const [harness, command] of [["claude_code", /^claude --resume [\w-]+$/], ["codex", /^codex resume [\w-]+$/], ["pi", /^pi --session [\w-]+$/]] as const) {
      test(`one of ${harness} is gone on with in a terminal, once a person has seen the command and agreed`, async () => {
        const row = await rowOfHarness(harness);
        const refused = await reopened(row, false);
        assert.deepStrictEqual(refused.terminals, []);
        assert.match(String(refused.asked[0]), /^modal: Run this in a terminal\?/);
        const { asked, terminals } = await reopened(row, true);
        const typed = terminals[0]?.typed[0] ?? "";
        assert.match(typed, command);
        assert.ok(String(asked[0]).includes(typed));
        assert.strictEqual(terminals.length, 1);
      });
    }

    test("it runs in the session's folder, where that is on this machine", async () => {
      const [hit] = await parts.recall.ask(QUESTION);
      assert.ok(hit?.cwd && fs.existsSync(hit.cwd));
      const { terminals, asked } = await reopened(parts.recall.getChildren()[0], true);
      assert.strictEqual(terminals[0]?.options.cwd, hit.cwd);
      assert.ok(String(asked[0]).includes(hit.cwd));
    });

    test("one that nobody can go on with is said so", async () => {
      const { asked, terminals } = await reopened(await rowOfHarness("hermes"), true);
      assert.deepStrictEqual(terminals, []);
      assert.match(asked.join(), /^message: .*cannot go on/);
      await parts.sessions.setFilter({});
      parts.sessions.group("day");
    });

    test("from its document too; and a file that it touched is opened from there", async () => {
      await parts.recall.ask(QUESTION);
      await vscode.commands.executeCommand("funes.openTurn", parts.recall.getChildren()[0]);
      await until(() => vscode.window.activeTextEditor?.document.uri.scheme === "funes");
      const { terminals } = await reopened(undefined, true);
      assert.match(terminals[0]?.typed[0] ?? "", /^claude --resume/);
      const file = process.env["FUNES_TEST_FILE"] ?? "";
      const asked = await answering({ pick: (labels) => labels.find((one) => one === path.basename(file)) }, () => vscode.commands.executeCommand("funes.openTouched"));
      assert.match(String(asked[0]), /^pick: Files it touched: .*http\.py/);
      assert.strictEqual(vscode.window.activeTextEditor?.document.uri.fsPath, file);
    });
  });
});
