/** Where the server may be. */
import * as fs from "node:fs";
import * as path from "node:path";

export interface Surroundings {
  /** What the setting says; empty when it says nothing. */
  command: readonly string[];
  /** Folders of the workspace; none of one that is not trusted. */
  trustedFolders: readonly string[];
  env: Readonly<Record<string, string | undefined>>;
  home: string;
  windows: boolean;
}

/** Returns the places that are looked at, in their order. */
export function candidates(at: Surroundings): string[] {
  const names = at.windows ? ["funes-ls.exe", "funes-ls.cmd"] : ["funes-ls"];
  const bin = at.windows ? "Scripts" : "bin";
  const { env, home } = at;
  const data = env["XDG_DATA_HOME"] ?? path.join(home, ".local", "share");
  const folders = [
    ...at.trustedFolders.flatMap((folder) => [".venv", "venv", "env"].map((venv) => path.join(folder, venv, bin))),
    ...(env["PATH"] ?? env["Path"] ?? "").split(at.windows ? ";" : ":"),
    env["UV_TOOL_BIN_DIR"],
    env["XDG_BIN_HOME"],
    env["PIPX_BIN_DIR"],
    path.join(home, ".local", "bin"),
    path.join(env["UV_TOOL_DIR"] ?? path.join(data, "uv", "tools"), "funes-ls", bin),
    path.join(env["PIPX_HOME"] ?? path.join(data, "pipx"), "venvs", "funes-ls", bin),
    path.join(home, ".local", "pipx", "venvs", "funes-ls", bin),
  ];
  // A relative folder on PATH would be one of whatever workspace is open.
  const absolute = folders.filter((one): one is string => !!one && path.isAbsolute(one));
  return absolute.flatMap((folder) => names.map((name) => path.join(folder, name)));
}

/** Returns the program with its arguments, nothing when there is none. */
export function serverCommand(at: Surroundings, runs = isProgram): string[] | undefined {
  if (at.command.length > 0) return [...at.command];
  const found = candidates(at).find(runs);
  return found === undefined ? undefined : [found];
}

function isProgram(file: string): boolean {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}
