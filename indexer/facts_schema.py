"""The tables of file facts inside a catalog; see `funes_ls.indexer.facts_tables`."""

#: Made where they are absent, in catalogs of older programs too.
SCHEMA = (
    """CREATE TABLE IF NOT EXISTS facts_sessions (
    session INTEGER PRIMARY KEY, session_id TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL, state BLOB
)""",
    """CREATE TABLE IF NOT EXISTS facts_paths (
    path_id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, name TEXT NOT NULL
)""",
    "CREATE INDEX IF NOT EXISTS facts_paths_name ON facts_paths(name)",
    """CREATE TABLE IF NOT EXISTS facts_events (
    event_id INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, path_id INTEGER NOT NULL,
    kind INTEGER NOT NULL, seq INTEGER NOT NULL, block_idx INTEGER NOT NULL, n INTEGER NOT NULL,
    ts_us INTEGER, flags INTEGER NOT NULL, first_line INTEGER NOT NULL, turn_uuid TEXT NOT NULL,
    ask TEXT NOT NULL, reason TEXT NOT NULL, source TEXT NOT NULL, body BLOB,
    UNIQUE (session, seq, block_idx, n, turn_uuid)
)""",
    "CREATE INDEX IF NOT EXISTS facts_events_path ON facts_events(path_id, session, kind)",
    """CREATE TABLE IF NOT EXISTS facts_lines (
    hash INTEGER NOT NULL, event_id INTEGER NOT NULL, PRIMARY KEY (hash, event_id)
) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS facts_commands (
    session INTEGER NOT NULL, seq INTEGER NOT NULL, block_idx INTEGER NOT NULL,
    turn_uuid TEXT NOT NULL, ts_us INTEGER, exit_status INTEGER, text TEXT NOT NULL,
    PRIMARY KEY (session, seq, block_idx, turn_uuid)
) WITHOUT ROWID""",
)
