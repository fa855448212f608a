"""The write path: traces to turns to chunks to a memory; at its bottom the shared floor."""
