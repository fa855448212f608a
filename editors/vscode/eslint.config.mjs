import tseslint from "typescript-eslint";

const WORDS = "/[A-Za-z]{2,} [A-Za-z]{2,}/";
/** Not what is translated, logged or a name of a type. */
const ELSEWHERE = ':not(CallExpression[callee.property.name="t"] > Literal, CallExpression[callee.name="t"] > Literal, CallExpression[callee.object.property.name="log"] > Literal, TSLiteralType > Literal)';
const SHOWN = "/^(title|label|prompt|placeHolder|description|detail|message|tooltip|text)$/";
const untranslated = "What a person reads goes through vscode.l10n.t.";

export default tseslint.config(
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true }],
      "@typescript-eslint/no-unnecessary-type-parameters": "off",
      "@typescript-eslint/no-floating-promises": ["error", { allowForKnownSafeCalls: [{ from: "package", name: "test", package: "node:test" }] }],
      "no-console": "error",
    },
  },
  { files: ["src/test/**"], rules: { "no-console": "off" } },
  {
    files: ["src/*.ts"],
    rules: {
      "no-restricted-syntax": [
        "error",
        { selector: `Literal[value=${WORDS}]${ELSEWHERE}`, message: untranslated },
        { selector: `TemplateLiteral:not(CallExpression[callee.object.property.name="log"] > TemplateLiteral) > TemplateElement[value.raw=${WORDS}]`, message: untranslated },
        { selector: `Property[key.name=${SHOWN}] > Literal.value[value=/[A-Za-z]/]`, message: untranslated },
        { selector: `AssignmentExpression[left.property.name=${SHOWN}] > Literal.right[value=/[A-Za-z]/]`, message: untranslated },
        { selector: 'CallExpression[callee.property.name=/^show(Information|Warning|Error)Message$/] > Literal', message: untranslated },
        { selector: "NewExpression[callee.property.name=TreeItem] > Literal", message: untranslated },
      ],
    },
  },
);
