"""The gate: a second scanner that must say of every string that it may leave this machine."""
