#!/bin/sh
# Builds sdist and wheel, installs the wheel where nothing else is, and uses it outside the
# checkout: help, an index and a recall with words and vectors. Needs the tools on PATH.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
unset FUNES_HOME FUNES_ENGINE FUNES_MEMORY
clean() {
    # The engine that the commands below start is of the installed wheel, and of $work's home.
    [ ! -x "$work/venv/bin/funes" ] || [ -z "${FUNES_HOME-}" ] || "$work/venv/bin/funes" engine stop -q >/dev/null || true
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM

python -m build --no-isolation --outdir "$work/dist" . > "$work/build.log" 2>&1 ||
    { cat "$work/build.log" >&2; exit 1; }
ls "$work/dist"

# Only what the wheel itself declares, at the pinned versions. Without hashes: pip checks them for
# all requirements or for none, and our own wheel is not in the list.
sed -e '/^ *--hash=/d' -e 's/ *\\$//' constraints.txt > "$work/versions.txt"
python -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq -c "$work/versions.txt" "$work"/dist/*.whl

model=$(python -c 'from tests.tiny_model import tiny_model_dir; print(tiny_model_dir())')
mkdir "$work/home"
cp -R tests/traces/home/.codex "$work/home/.codex"
export HOME="$work/home" FUNES_HOME="$work/home/.funes" FUNES_MODEL="$model"
cd "$work/home"
"$work/venv/bin/funes" -h > help.txt
grep -q 'funes recall' help.txt
"$work/venv/bin/funes" index --yes
"$work/venv/bin/funes" recall -k 3 "which rounding do banks use for fees" > answer.txt
grep -q 'half away from zero' answer.txt
"$work/venv/bin/funes" recall -k 3 --no-engine "which rounding do banks use for fees" > again.txt
cmp answer.txt again.txt
"$work/venv/bin/funes" engine status | grep -q '^engine    process'
"$work/venv/bin/funes-ls" --version | grep -q funes-ls
"$work/venv/bin/python" -c '
import pathlib, funes_ls
where = pathlib.Path(funes_ls.__file__)
assert "site-packages" in where.parts, where
assert (where.parent / "py.typed").is_file()'
echo "The wheel works outside the checkout."
