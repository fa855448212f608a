"""Files as URIs name them."""

from urllib.parse import unquote, urlsplit


def path_of(uri: str) -> str:
    """Return the file that a URI names, "" when it names none."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or not parts.path:
        return ""
    path = unquote(parts.path)
    return path[1:] if path[2:3] == ":" else path
