// node l10n.mjs: writes l10n/bundle.l10n.json, every text that src says through vscode.l10n.t, as
// translators take it. With --check it writes nothing and fails when that file is not current.
import fs from "node:fs";
import ts from "typescript";

const PLACE = "l10n/bundle.l10n.json";

/** Returns whether a call is one of `vscode.l10n.t`, or of `t` where that is its short name. */
function isTranslation(node) {
  if (!ts.isCallExpression(node)) return false;
  const called = node.expression.getText();
  return called === "t" || called.endsWith("l10n.t");
}

function textsOf(file) {
  const source = ts.createSourceFile(file, fs.readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true);
  const found = [];
  const visit = (node) => {
    if (isTranslation(node)) {
      const [text] = node.arguments;
      if (!text || !ts.isStringLiteralLike(text)) throw new Error(`${file}: ${node.getText()} has no literal to translate`);
      found.push(text.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

const files = fs.readdirSync("src").filter((name) => name.endsWith(".ts"));
const texts = [...new Set(files.flatMap((name) => textsOf(`src/${name}`)))].sort();
const bundle = `${JSON.stringify(Object.fromEntries(texts.map((text) => [text, text])), null, 2)}\n`;
if (!process.argv.includes("--check")) {
  fs.mkdirSync("l10n", { recursive: true });
  fs.writeFileSync(PLACE, bundle);
} else if (!fs.existsSync(PLACE) || fs.readFileSync(PLACE, "utf8") !== bundle) {
  console.error(`${PLACE} is not current: node l10n.mjs`);
  process.exitCode = 1;
}
