"""Times `funes mcp`: its start, its memory, and what it adds to the engine's answers.

Usage: python -m benchmarks.mcp --home HOME [--rounds 100] [--starts 20]
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from funes_ls.engine.client import connect
from tests.e2e.engines import peak_rss_mb
from tests.e2e.mcp_client import McpClient

_QUESTIONS = ("why was the cache dropped", "retry with backoff", "rounding of fees", "flaky test")


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="a funes home with a memory")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--starts", type=int, default=20)
    args = parser.parse_args()
    env = {**os.environ, "FUNES_HOME": str(args.home)}
    print(f"load before: {os.getloadavg()[0]:.1f}\n")
    print("| what | n | p50 ms | p95 | max |\n|---|---|---|---|---|")
    peaks_mb = _starts(env, args.starts)
    with connect(args.home, client="bench", env=env) as engine, McpClient(env) as client:
        client.initialize()
        for number in range(args.rounds // 10):  # both are warm then
            client.call("recall", query=f"{_QUESTIONS[number % 4]} {number}")
        _row("recall, of the engine itself", _timed(args.rounds, lambda q: _recall(engine, q)))
        _row("recall, through MCP", _timed(args.rounds, lambda q: client.call("recall", query=q)))
        _row("status, through MCP", _timed(args.rounds, lambda _: client.call("status")))
        peaks_mb.append(peak_rss_mb(client.process.pid))
    print(f"\nresident at most: {max(peaks_mb):.1f} MB")


def _starts(env: dict[str, str], count: int) -> list[float]:
    hello_ms, answer_ms, peaks_mb = [], [], []
    for number in range(count):
        with McpClient(env) as client:
            client.initialize()
            hello_ms.append((time.monotonic() - client.started) * 1000)
            client.call("recall", query=f"{_QUESTIONS[number % 4]} at start {number}")
            answer_ms.append((time.monotonic() - client.started) * 1000)
            peaks_mb.append(peak_rss_mb(client.process.pid))
    _row("start to `initialize` answered", hello_ms)
    _row("start to the first recall, engine warm", answer_ms[1:])
    return peaks_mb


def _recall(engine: Any, query: str) -> None:
    engine.request("funes/recall", {"query": query}, timeout_s=30)


def _timed(rounds: int, ask: Callable[[str], Any]) -> list[float]:
    times_ms = []
    for number in range(rounds):
        began = time.monotonic()
        ask(f"{_QUESTIONS[number % 4]} in round {number} at {began}")
        times_ms.append((time.monotonic() - began) * 1000)
    return times_ms


def _row(what: str, times_ms: list[float]) -> None:
    ordered = sorted(times_ms)
    p95 = ordered[int(len(ordered) * 0.95)]
    print(
        f"| {what} | {len(ordered)} | {statistics.median(ordered):.1f} | {p95:.1f} "
        f"| {ordered[-1]:.1f} |"
    )


if __name__ == "__main__":
    main()
