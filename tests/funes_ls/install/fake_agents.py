"""Commands that stand in for agents: they change the files that the real ones change, or fail."""

import sys
from pathlib import Path

#: A program that takes `mcp add`, `plugin …` and `install` as Claude Code, Codex and pi do.
_PROGRAM = r"""
import json, os, sys
from pathlib import Path

home, words = Path(os.environ["HOME"]), sys.argv[1:]
with (home / "calls.jsonl").open("a", encoding="utf-8") as calls:
    calls.write(json.dumps([Path(sys.argv[0]).name, *words]) + "\n")


def change(path, edit):
    path.parent.mkdir(parents=True, exist_ok=True)
    said = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    edit(said)
    path.write_text(json.dumps(said, indent=2), encoding="utf-8")


def server():
    at = words.index("--")
    pairs = [words[i + 1].split("=", 1) for i, one in enumerate(words[:at]) if one == "-e"]
    return {"type": "stdio", "command": words[at + 1], "args": words[at + 2 :], "env": dict(pairs)}


folder = home / ".claude"
if words[:2] == ["mcp", "add"]:
    change(home / ".claude.json", lambda d: d.setdefault("mcpServers", {}).update(funes=server()))
elif words[:2] == ["mcp", "remove"]:
    change(home / ".claude.json", lambda d: d["mcpServers"].pop("funes"))
elif words[:3] == ["plugin", "marketplace", "add"]:
    source = {"source": "directory", "path": words[3]}
    change(folder / "plugins" / "known_marketplaces.json",
           lambda d: d.update({"funes-local": {"source": source}}))
    change(folder / "settings.json",
           lambda d: d.setdefault("extraKnownMarketplaces", {}).update({"funes-local": source}))
elif words[:2] == ["plugin", "install"]:
    change(folder / "plugins" / "installed_plugins.json",
           lambda d: d.setdefault("plugins", {}).update({words[2]: [{"version": "1"}]}))
    change(folder / "settings.json",
           lambda d: d.setdefault("enabledPlugins", {}).update({words[2]: True}))
elif words[:3] == ["plugin", "marketplace", "remove"]:
    change(folder / "plugins" / "known_marketplaces.json", lambda d: d.pop("funes-local"))
    change(folder / "plugins" / "installed_plugins.json", lambda d: d["plugins"].clear())
    change(folder / "settings.json", lambda d: (
        d["extraKnownMarketplaces"].clear(), d["enabledPlugins"].clear()))
elif words[:1] == ["--version"]:
    print("0.73.1")
else:
    sys.exit("unknown command")
"""
_OLD = "import sys\nif sys.argv[1] == 'plugin': sys.exit(\"error: unknown command 'plugin'\")\n"


def write_agent(folder: Path, name: str, kind: str = "whole") -> Path:
    """Write an agent's command and return the folder it is in.

    `kind`: `whole` works; `old` knows no plugins; `silent` does nothing and says so of nothing;
    `failing` exits with 3 and prints nothing.
    """
    code = {
        "whole": _PROGRAM,
        "old": _OLD + _PROGRAM,
        "silent": "",
        "failing": "import sys\nsys.exit(3)\n",
    }[kind]
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(f"#!{sys.executable} -S\n{code}", encoding="utf-8")
    program.chmod(0o755)
    return folder
