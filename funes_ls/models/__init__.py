"""Getting models onto this disk: known models, sources, installing, choosing one."""
