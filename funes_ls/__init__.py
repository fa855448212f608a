"""funes-ls: a local memory of coding-agent sessions, served like a language server."""

__version__ = "0.1.0"
