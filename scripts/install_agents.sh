#!/bin/sh
# Installs the coding agents that tests/agents drives, at the versions and hashes in scripts/agents,
# with npm into ~/.cache/funes-tests/agents (or $FUNES_TEST_AGENTS), once per machine. Asks nothing.
# Ends with 0 when Claude Code and Codex are there, 3 when this machine does not let it, 1 when
# something broke. To pin newer versions: change scripts/agents/NAME/package.json, and there run
#   npm install --package-lock-only --omit-lockfile-registry-resolved
set -eu
cd "$(dirname "$0")/agents"
needed="claude codex"
wanted="${*:-$needed pi}"
target="${FUNES_TEST_AGENTS:-$HOME/.cache/funes-tests/agents}"
limit_s=300
work=
scratch=$(mktemp -d)
log="$scratch/log"
clean() { rm -rf "$scratch" ${work:+"$work"}; }
trap clean EXIT
trap 'exit 130' INT TERM

cannot() {
    echo "Agents are not installed: $1." >&2
    exit 3
}

is_there() { # the same lock file, and it runs
    cmp -s "$1/package-lock.json" "$target/$1/package-lock.json" && runs "$target/$1" "$1"
}

runs() {
    (
        unset NODE_OPTIONS
        HOME="$scratch" DISABLE_AUTOUPDATER=1 timeout 60 "$1/node_modules/.bin/$2" --version
    ) > /dev/null 2>&1
}

# Only Claude Code's own script may run: it puts the program of this kind of machine in place.
install() {
    work="$target/.$1.$$"
    rm -rf "$work"
    mkdir -p "$work"
    cp "$1/package.json" "$1/package-lock.json" "$work"
    scripts=--ignore-scripts
    [ "$1" != claude ] || scripts=--no-ignore-scripts
    timeout "$limit_s" npm ci --prefix "$work" "$scripts" --prefer-offline --no-audit --no-fund \
        --no-update-notifier --loglevel=error --fetch-retries=2 --fetch-retry-mintimeout=1000 \
        --fetch-retry-maxtimeout=5000 > "$log" 2>&1 || return 1
    runs "$work" "$1" || { echo "it does not run here" > "$log"; return 1; }
    rm -rf "$target/$1"
    mv "$work" "$target/$1"
    work=
}

command -v npm > /dev/null || cannot "there is no npm"
command -v timeout > /dev/null || cannot "there is no timeout"
mkdir -p "$target"
left_out=
for agent in $wanted; do
    if is_there "$agent"; then
        echo "$agent is installed."
    elif install "$agent"; then
        echo "Installed $agent into $target."
    elif grep -q EINTEGRITY "$log"; then
        tail -n 5 "$log" >&2
        exit 1
    else
        echo "$agent could not be installed:" >&2
        grep -m 3 . "$log" >&2 || true
        rm -rf "$work"
        case " $needed " in *" $agent "*) left_out=yes ;; esac
    fi
done
[ -z "$left_out" ] || cannot "npm could not get them, or they do not run here"
