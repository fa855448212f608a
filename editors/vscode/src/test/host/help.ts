/** For the suites. */
import assert from "node:assert";
import * as vscode from "vscode";
import type { ServerState } from "../../connection";
import type { Parts } from "../../extension";

/** Resolves with what something gives as soon as it gives something; fails when it takes too long. */
export async function until<Value>(what: () => Value | Promise<Value>, most = 15_000): Promise<NonNullable<Value>> {
  const ends = Date.now() + most;
  for (;;) {
    const value = await what();
    if (value) return value;
    if (Date.now() > ends) throw new Error(`not within ${most} ms: ${what.toString()}`);
    await new Promise((go) => setTimeout(go, 50));
  }
}

/** Activates the extension and waits until its server is in a state. */
export async function partsNow(state: ServerState): Promise<Parts> {
  const extension = vscode.extensions.getExtension<Parts>("funes.funes");
  assert.ok(extension);
  const parts = await extension.activate();
  try {
    await until(() => parts.connection.state === state, 20_000);
  } catch {
    throw new Error(`${parts.connection.state}: ${parts.connection.reason} ${parts.connection.detail}`);
  }
  return parts;
}
