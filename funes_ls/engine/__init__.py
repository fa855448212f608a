"""The one resident process of a home: socket, dispatch, scheduling, lifetime; and its client."""
