"""The layout's promises: what is packaged, who may import whom, what stays light, the types."""

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAPPED = {"indexer": "funes_ls.indexer", "retrieval": "funes_ls.retrieval"}
FOLDERS = {"funes_ls": "funes_ls", **MAPPED}

#: The shared bottom of indexer/, by module name; `catalog_x` counts as a part of `catalog`.
FLOOR = {
    "blocks",
    "calls",
    "catalog",
    "chunk",
    "dataset",
    "embedding",
    "errors",
    "facts",
    "home",
    "identifiers",
    "lexical",
    "lock",
    "memory",
    "model",
    "names",
    "pipes",
    "progress",
    "redaction",
    "settings",
    "times",
}
#: What neither the write path nor the read path may know of: protocols and terminals.
EDGE_LIBRARIES = {"argparse", "lsprotocol", "pygls"}
#: Importing any of these costs a shim its speed.
HEAVY = {"fastembed", "lancedb", "lsprotocol", "numpy", "onnxruntime", "pyarrow", "pygls", "rich"}
MAX_LINES = 600


def dotted(path: Path) -> str:
    top, *rest = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([FOLDERS[top], *(part for part in rest if part != "__init__")])


def modules() -> list[Path]:
    return sorted(path for top in FOLDERS for path in (ROOT / top).rglob("*.py"))


MODULES = {dotted(path): path for path in modules()}


def imports(path: Path) -> set[str]:
    """Return every module the file imports anywhere, `from package import module` resolved."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            full = {f"{base}.{alias.name}" for alias in node.names}
            within = full & set(MODULES)
            found |= within
            if within != full:
                found.add(base)
    return found


def is_floor(name: str) -> bool:
    parts = name.split(".")
    return (
        parts[:2] == ["funes_ls", "indexer"] and len(parts) > 2 and parts[2].split("_")[0] in FLOOR
    )


def is_under(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def own_imports(package: str) -> list[tuple[str, str]]:
    """Return (importer, imported) for imports of this project made by modules of a package."""
    return [
        (who, name)
        for who, path in MODULES.items()
        if is_under(who, package)
        for name in sorted(imports(path))
        if is_under(name, "funes_ls")
    ]


def test_every_package_is_listed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = set(project["tool"]["setuptools"]["packages"])
    assert {dotted(path) for path in modules() if path.name == "__init__.py"} == listed


def test_every_folder_with_code_is_a_package() -> None:
    folders = {path.parent for path in modules()}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_imports_are_absolute() -> None:
    relative = [
        who
        for who, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []


def test_no_module_uses_the_bare_folder_names() -> None:
    sources = [*modules(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    bare = [
        (str(path.relative_to(ROOT)), name)
        for path in sources
        if not is_case_input(path)
        for name in imports(path)
        if name.split(".")[0] in MAPPED
    ]
    assert bare == []


def is_case_input(path: Path) -> bool:
    return path.is_relative_to(ROOT / "tests" / "cases")


def test_the_write_path_imports_only_itself() -> None:
    bad = [
        pair
        for pair in own_imports("funes_ls.indexer")
        if not is_under(pair[1], "funes_ls.indexer")
    ]
    assert bad == []


def test_the_floor_imports_only_the_floor() -> None:
    bad = [
        (who, name)
        for who, name in own_imports("funes_ls.indexer")
        if is_floor(who) and not is_floor(name)
    ]
    assert bad == []


def test_the_read_path_imports_itself_and_the_floor() -> None:
    bad = [
        (who, name)
        for who, name in own_imports("funes_ls.retrieval")
        if not is_under(name, "funes_ls.retrieval") and not is_floor(name)
    ]
    assert bad == []


def test_memories_elsewhere_need_the_floor_and_the_gate_alone() -> None:
    bad = [
        (who, name)
        for who, name in own_imports("funes_ls.hub")
        if not is_floor(name)
        and not any(is_under(name, f"funes_ls.{layer}") for layer in ("hub", "gate"))
        and name != "funes_ls"
    ]
    assert bad == []


def test_service_knows_no_edge() -> None:
    edges = ("cli", "handlers", "server", "mcp", "hooks", "render", "engine", "agents")
    bad = [
        (who, name)
        for who, name in own_imports("funes_ls.service")
        if any(is_under(name, f"funes_ls.{edge}") for edge in edges)
    ]
    assert bad == []


#: What each front and the engine may not know of one another, by package.
FORBIDDEN = {
    "funes_ls.engine": ("cli", "handlers", "server", "mcp", "hooks", "render"),
    "funes_ls.mcp": ("cli", "handlers", "server", "service", "memories", "indexer.memory"),
    "funes_ls.install": ("cli", "handlers", "server", "render", "engine", "service"),
    "funes_ls.handlers": ("cli", "service", "memories", "indexer.memory", "indexer.pipeline"),
    "funes_ls.server": ("cli", "service", "memories", "indexer.memory", "indexer.pipeline"),
    "funes_ls.protocol": ("cli", "handlers", "server", "render", "engine", "service"),
}


@pytest.mark.parametrize("package", sorted(FORBIDDEN))
def test_edges_do_not_know_one_another(package: str) -> None:
    bad = [
        (who, name)
        for who, name in own_imports(package)
        if any(is_under(name, f"funes_ls.{edge}") for edge in FORBIDDEN[package])
    ]
    assert bad == []


def test_what_the_shim_uses_of_the_engine_needs_the_standard_library_alone() -> None:
    light = ["funes_ls.engine.client", "funes_ls.engine.address", "funes_ls.hook"]
    code = "\n".join(f"import {name}" for name in light)
    assert other_packages_after(code) == set()


def test_giving_agents_a_memory_needs_the_standard_library_alone() -> None:
    names = [name for name in MODULES if is_under(name, "funes_ls.install")]
    assert other_packages_after("\n".join(f"import {name}" for name in names)) == set()


@pytest.mark.parametrize("package", ["funes_ls.indexer", "funes_ls.retrieval", "funes_ls.service"])
def test_no_protocol_or_terminal_below_the_edges(package: str) -> None:
    bad = [
        (who, name)
        for who, path in MODULES.items()
        if is_under(who, package)
        for name in imports(path)
        if name.split(".")[0] in EDGE_LIBRARIES
    ]
    assert bad == []


def test_the_root_module_is_a_docstring_and_a_version() -> None:
    body = ast.parse((ROOT / "funes_ls" / "__init__.py").read_text(encoding="utf-8")).body
    kinds = [type(node).__name__ for node in body]
    assert kinds == ["Expr", "Assign"]
    assert ast.unparse(body[1]).startswith("__version__ = ")


def test_only_render_writes_to_stdout() -> None:
    bad = [
        (who, ast.unparse(node))
        for who, path in MODULES.items()
        if who != "funes_ls.render"
        for node in stdout_uses(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert bad == []


def stdout_uses(tree: ast.Module) -> list[ast.AST]:
    """Return every use of stdout but asking whether it is a terminal; `print` is one."""
    asked = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "isatty"
    }
    return [node for node in ast.walk(tree) if names_stdout(node) and id(node) not in asked]


def names_stdout(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and node.attr in ("stdout", "__stdout__"):
        return isinstance(node.value, ast.Name) and node.value.id == "sys"
    if isinstance(node, ast.ImportFrom) and node.module == "sys":
        return any("stdout" in alias.name for alias in node.names)
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    )


def test_no_file_is_too_long() -> None:
    code = [*modules(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in code
        if not is_case_input(path)
    }
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


def test_no_module_is_called_utils() -> None:
    assert [who for who in MODULES if who.rpartition(".")[2] in ("utils", "helpers")] == []


def heavy_after(code: str) -> set[str]:
    """Return which heavy libraries a fresh interpreter has loaded after running the code."""
    program = f"import sys\n{code}\nprint(*(set(sys.modules) & {HEAVY!r}), file=sys.stderr)"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return set(run.stderr.split())


def other_packages_after(code: str) -> set[str]:
    """Return the top-level names from outside the standard library that the code has loaded."""
    program = (
        "import sys\nbefore = set(sys.modules)\n"
        f"{code}\n"
        "names = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "print(*(names - set(sys.stdlib_module_names) - {'funes_ls'}), file=sys.stderr)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return set(run.stderr.split())


def test_help_loads_nothing_heavy() -> None:
    code = (
        "from funes_ls.cli import main\n"
        "try:\n    main(['-h'])\nexcept SystemExit as end:\n    assert not end.code, end.code"
    )
    assert heavy_after(code) == set()


@pytest.mark.parametrize(
    "name", [f"funes_ls.indexer.{n}" for n in sorted(FLOOR) if f"funes_ls.indexer.{n}" in MODULES]
)
def test_the_floor_loads_storage_and_models_only_in_use(name: str) -> None:
    assert heavy_after(f"import {name}") <= {"numpy"}


@pytest.mark.timeout(300)
def test_types(tmp_path: Path) -> None:
    """Run mypy over a tree of links that has the shape of the installed package."""
    tree = tmp_path / "funes_ls"
    tree.mkdir()
    for child in (ROOT / "funes_ls").iterdir():
        (tree / child.name).symlink_to(child)
    for folder in MAPPED:
        (tree / folder).symlink_to(ROOT / folder)
    config = ["--strict", "--config-file", str(ROOT / "pyproject.toml")]
    run = subprocess.run(
        [sys.executable, "-m", "mypy", *config, "-p", "funes_ls"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache"), "MYPYPATH": str(tmp_path)},
        timeout=280,
    )
    assert run.returncode == 0, run.stdout + run.stderr
