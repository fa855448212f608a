"""A client of the MCP server that writes and reads raw lines."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

ANSWER_S = 30.0
_END_S = 15.0
COMMAND = [sys.executable, "-c", "import sys; from funes_ls.cli import main; sys.exit(main())"]


class McpClient:
    """A server in a process of its own, and all that it wrote to stdout, line by line."""

    def __init__(
        self,
        env: Mapping[str, str],
        *words: str,
        cwd: Path | None = None,
        errors: Path | None = None,
    ) -> None:
        """Start a server; nothing is said to it yet."""
        self.started = time.monotonic()
        self.lines: list[bytes] = []
        self._new = threading.Condition()
        with (errors or Path("/dev/null")).open("wb") as stderr:
            self.process = subprocess.Popen(
                [*COMMAND, "mcp", *words],
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._number = 0

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._new:
                self.lines.append(line)
                self._new.notify_all()
        with self._new:
            self._new.notify_all()

    def raw(self, data: bytes) -> None:
        """Write bytes."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, **message: Any) -> None:
        """Write a message."""
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def next(self, wanted: Any = ..., *, seconds: float = ANSWER_S) -> Any:
        """Take the first message, or the first with an id, that has not been taken yet."""
        ends = time.monotonic() + seconds
        with self._new:
            while True:
                for at, line in enumerate(self.lines):
                    message = json.loads(line)
                    if wanted is ... or (isinstance(message, dict) and message["id"] == wanted):
                        del self.lines[at]
                        return message
                left = ends - time.monotonic()
                assert left > 0, f"no answer {wanted} within {seconds:g} s"
                self._new.wait(min(left, 0.5))

    def ask(self, method: str, params: Any = None) -> Any:
        """Return the answer to a request."""
        number = self.begin(method, params)
        return self.next(number)

    def begin(self, method: str, params: Any = None) -> int:
        """Send a request and return its id."""
        self._number += 1
        extra = {} if params is None else {"params": params}
        self.send(id=self._number, method=method, **extra)
        return self._number

    def initialize(self, version: str = "2025-06-18", **capabilities: Any) -> Any:
        """Say hello, and return the result."""
        params = {
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "0"},
        }
        answer = self.ask("initialize", params)
        self.send(method="notifications/initialized")
        return answer["result"]

    def call(self, tool: str, **arguments: Any) -> str:
        """Return the text of a call that succeeds."""
        result = self.outcome(tool, **arguments)
        assert not result["isError"], result
        return str(result["content"][0]["text"])

    def failure(self, tool: str, **arguments: Any) -> str:
        """Return the text of a call that fails."""
        result = self.outcome(tool, **arguments)
        assert result["isError"], result
        return str(result["content"][0]["text"])

    def outcome(self, tool: str, **arguments: Any) -> Any:
        """Return the result of a call."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert "result" in answer, answer
        [part] = answer["result"]["content"]
        assert part["type"] == "text"
        return answer["result"]

    def end(self) -> int:
        """Close stdin, and return the exit code."""
        assert self.process.stdin is not None and self.process.stdout is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        code = self.process.wait(_END_S)
        self._reader.join(_END_S)
        self.process.stdout.close()
        return code

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it, whatever it does."""
        try:
            self.end()
        except (subprocess.TimeoutExpired, OSError):
            self.process.kill()
            self.process.wait()
