import assert from "node:assert";
import { test } from "node:test";
import { sectionOf, type Inspected } from "../../settings";

test("only what a person has set goes to the server, the nearest value of each", () => {
  const set: Record<string, Inspected> = {
    "recall.k": { globalValue: 3, workspaceValue: 4 },
    "recall.halfLife": { globalValue: 0 },
    "hover.enabled": { globalValue: true, workspaceFolderValue: false },
    codeLens: { workspaceValue: "off" },
    memory: {},
    "recall.neighbors": { globalValue: null },
    "server.command": { globalValue: ["/x"] },
  };
  assert.deepStrictEqual(sectionOf((key) => set[key]), { recall: { k: 4, halfLife: 0 }, hover: { enabled: false }, codeLens: "off" });
  assert.deepStrictEqual(sectionOf(() => undefined), {});
});
