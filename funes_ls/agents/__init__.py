"""Coding agents as programs that can be run: a file per agent, the standard library only."""
