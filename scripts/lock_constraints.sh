#!/bin/sh
# Writes constraints.txt anew: exact versions and the hashes of every platform's files, for the
# program, its tests and its build backend. Keeps the versions already there unless --upgrade.
# The resolver lives in a throw-away environment; nothing of it is needed to use the file.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q uv
{
    echo "# Exact versions with hashes: pip install --require-hashes -r constraints.txt"
    echo "# Written by scripts/lock_constraints.sh from pyproject.toml; not edited by hand."
} > "$work/head"
if [ -e constraints.txt ]; then cp constraints.txt "$work/body"; fi
"$work/venv/bin/uv" pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
    --generate-hashes --no-header --no-annotate --quiet --output-file "$work/body" "$@"
cat "$work/head" "$work/body" > constraints.txt
