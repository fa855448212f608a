"""Made-up secrets that the scanner must see, new ones each time: what it misses it cannot clear."""

import base64
import secrets
import string

_SIGNS = string.ascii_letters + string.digits


def canaries() -> list[str]:
    """Return texts of which each holds one secret, in the forms that secrets come in."""
    github = f"GITHUB_TOKEN=ghp_{_signs(36)}"
    uri = f"postgres://svc:{_signs(20)}@db1.prod.net:5432/x"
    return [
        github,
        uri,
        _key(),
        f"{github[:-36]}{_signs(36)} # gitleaks:allow",
        base64.b64encode(f"export GITHUB_TOKEN=ghp_{_signs(36)}\n".encode()).decode(),
    ]


def _signs(count: int) -> str:
    """Return letters and digits with some of each kind, as a scanner expects of a secret."""
    while True:
        made = "".join(secrets.choice(_SIGNS) for _ in range(count))
        kinds = (str.islower, str.isupper, str.isdigit)
        if all(sum(map(kind, made)) >= 3 for kind in kinds) and len(set(made)) > count // 2:
            return made


def _key() -> str:
    lines = [base64.b64encode(secrets.token_bytes(48)).decode() for _ in range(12)]
    name = "RSA PRIVATE KEY"
    return "\n".join([f"-----BEGIN {name}-----", *lines, f"-----END {name}-----"])
