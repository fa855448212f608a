import assert from "node:assert";
import { test } from "node:test";
import { candidates, serverCommand, type Surroundings } from "../../find";

const at: Surroundings = { command: [], trustedFolders: ["/w"], env: { PATH: "/usr/bin:.:bin:" }, home: "/home/me", windows: false };

test("the workspace's environment first, then PATH, then where tools are installed", () => {
  const all = candidates(at);
  assert.strictEqual(all[0], "/w/.venv/bin/funes-ls");
  assert.ok(all.indexOf("/usr/bin/funes-ls") < all.indexOf("/home/me/.local/bin/funes-ls"));
  assert.ok(all.includes("/home/me/.local/share/uv/tools/funes-ls/bin/funes-ls"));
  assert.ok(all.includes("/home/me/.local/share/pipx/venvs/funes-ls/bin/funes-ls"));
});

test("nothing relative, nothing of a workspace that is not trusted", () => {
  for (const one of candidates({ ...at, trustedFolders: [] })) assert.ok(one.startsWith("/usr/bin") || one.startsWith("/home/me/"), one);
});

test("variables of uv and pipx count", () => {
  const all = candidates({ ...at, env: { UV_TOOL_BIN_DIR: "/u", PIPX_HOME: "/p", UV_TOOL_DIR: "/t" } });
  for (const one of ["/u/funes-ls", "/p/venvs/funes-ls/bin/funes-ls", "/t/funes-ls/bin/funes-ls"]) assert.ok(all.includes(one), one);
});

test("the setting outranks all; nothing is nothing", () => {
  assert.deepStrictEqual(serverCommand({ ...at, command: ["/x", "-v"] }), ["/x", "-v"]);
  assert.deepStrictEqual(serverCommand(at, (one) => one === "/usr/bin/funes-ls"), ["/usr/bin/funes-ls"]);
  assert.strictEqual(serverCommand(at, () => false), undefined);
  assert.strictEqual(serverCommand({ ...at, trustedFolders: [], env: { PATH: "/nowhere" }, home: "/nowhere" }), undefined);
});
