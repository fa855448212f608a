/** What of the settings goes to the server: only what a person has set, since config.toml says the rest. */

/** Settings of package.json that the server takes; a test compares. */
export const KNOWN = [
  "memory",
  "recall.k",
  "recall.candidates",
  "recall.halfLife",
  "recall.ageFloor",
  "recall.neighbors",
  "recall.vectorWeight",
  "recall.priorToolUse",
  "recall.priorToolResult",
  "recall.rerank",
  "index.thinking",
  "hover.enabled",
  "codeLens",
  "log.level",
];

export interface Inspected {
  globalValue?: unknown;
  workspaceValue?: unknown;
  workspaceFolderValue?: unknown;
}

/** Returns the section `funes` as the server takes it. */
export function sectionOf(inspect: (key: string) => Inspected | undefined): Record<string, unknown> {
  const section: Record<string, unknown> = {};
  for (const key of KNOWN) {
    const all = inspect(key);
    const value = all?.workspaceFolderValue ?? all?.workspaceValue ?? all?.globalValue;
    if (value === undefined || value === null) continue;
    const [table, name] = key.split(".");
    if (table === undefined) continue;
    if (name === undefined) section[table] = value;
    else section[table] = { ...(section[table] as object | undefined), [name]: value };
  }
  return section;
}
