"""Trace readers: one file per harness, one protocol (`base.TraceSource`)."""
