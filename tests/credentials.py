"""Makes credentials that open nothing, the texts they lie about in, and what only looks like one.

All are made at run time from a seed. No text here has the shape of a credential: prefixes are put
together from pieces.
"""

import base64
import json
import random
import string
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import quote
from uuid import UUID

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
URLSAFE = f"{ALNUM}-_"
#: What people and programs put in passwords, beside what quotes and escapes.
SYMBOLS = "!@#%^*-_+=?~"
#: So much of a secret in one piece still shows it.
_PIECE = 8


class Source(random.Random):
    """Random characters from a seed."""

    def of(self, size: int, alphabet: str = ALNUM) -> str:
        """Return so many characters; among the first eight are three kinds, where there are."""
        made = [self.choice(alphabet) for _ in range(size)]
        for at, kind in zip(
            self.sample(range(min(8, size)), 3),
            (string.digits, string.ascii_lowercase, string.ascii_uppercase),
            strict=True,
        ):
            if usable := [char for char in kind if char in alphabet]:
                made[at] = self.choice(usable)
        return "".join(made)

    def word(self) -> str:
        """Return a word."""
        return self.choice(("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron"))

    def uuid(self) -> str:
        """Return a random UUID."""
        return str(UUID(int=self.getrandbits(128), version=4))

    def b64(self, size: int) -> str:
        """Return so many random bytes in Base64."""
        return base64.b64encode(self.randbytes(size)).decode()


class Credential(NamedTuple):
    """A value, what it is called, and what of it is secret."""

    kind: str
    name: str
    value: str
    secret: str

    @property
    def is_address(self) -> bool:
        """Whether it is more than a token: an address, a connection string."""
        return self.value != self.secret


class Sample(NamedTuple):
    """A text; `secrets` are as they stand in it."""

    kind: str
    context: str
    text: str
    secrets: tuple[str, ...]

    def leaks(self, redacted: str) -> bool:
        """Return whether a piece of a secret is left that is long enough to be of use."""
        return any(piece in redacted for secret in self.secrets for piece in pieces(secret))


def pieces(secret: str) -> Iterator[str]:
    """Yield all pieces of a secret that must not be left."""
    if len(secret) <= _PIECE:
        yield secret
    for at in range(len(secret) - _PIECE + 1):
        yield secret[at : at + _PIECE]


def github(source: Source) -> str:
    """Return a token with the prefix of GitHub's."""
    return "gh" + "p_" + source.of(36)


def password(source: Source, *, symbols: bool = False) -> str:
    """Return a password as a manager of passwords makes them."""
    size = source.randint(14, 24)
    if not symbols:
        return source.of(size)
    body = source.of(size - 3) + "".join(source.choice(SYMBOLS) for _ in range(2))
    mixed = "".join(source.sample(body, len(body)))
    return f"{source.choice(string.ascii_letters)}{mixed}"


def jwt(source: Source) -> str:
    """Return a signed token."""

    def part(value: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    claims: dict[str, object] = {"sub": source.of(10), "iat": source.randint(10**9, 2 * 10**9)}
    return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part(claims)}.{source.of(43, URLSAFE)}"


#: Prefix in pieces, size and alphabet of the rest, and the name such a token has.
_PREFIXED: dict[str, tuple[Sequence[str], int, str, str]] = {
    "gitlab": (("gl", "pat-"), 20, URLSAFE, "GITLAB_TOKEN"),
    "stripe": (("sk", "_live_"), 24, ALNUM, "STRIPE_SECRET_KEY"),
    "stripe-webhook": (("wh", "sec_"), 32, ALNUM, "STRIPE_WEBHOOK_SECRET"),
    "anthropic": (("sk", "-ant-", "api03-"), 95, URLSAFE, "ANTHROPIC_API_KEY"),
    "huggingface": (("h", "f_"), 34, string.ascii_letters, "HF_TOKEN"),
    "google": (("AI", "za"), 35, URLSAFE, "GOOGLE_API_KEY"),
    "google-client": (("GOC", "SPX-"), 28, URLSAFE, "GOOGLE_CLIENT_SECRET"),
    "npm": (("np", "m_"), 36, ALNUM, "NPM_TOKEN"),
    "pypi": (("py", "pi-", "AgEIcHlwaS5vcmc"), 120, URLSAFE, "TWINE_PASSWORD"),
    "digitalocean": (("do", "p_v1_"), 64, HEX, "DIGITALOCEAN_TOKEN"),
    "databricks": (("da", "pi"), 32, HEX, "DATABRICKS_TOKEN"),
    "linear": (("lin", "_api_"), 40, ALNUM, "LINEAR_API_KEY"),
    "figma": (("fi", "gd_"), 40, URLSAFE, "FIGMA_TOKEN"),
    "shopify": (("shp", "at_"), 32, HEX, "SHOPIFY_ACCESS_TOKEN"),
    "doppler": (("dp", ".pt."), 43, ALNUM, "DOPPLER_TOKEN"),
    "age": (("AGE-", "SECRET-", "KEY-1"), 58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", "SOPS_AGE_KEY"),
    "vault": (("hv", "s."), 90, URLSAFE, "VAULT_TOKEN"),
    "newrelic": (("NR", "AK-"), 27, UPPER, "NEW_RELIC_API_KEY"),
    "groq": (("gs", "k_"), 52, ALNUM, "GROQ_API_KEY"),
    "docker": (("dckr", "_pat_"), 27, URLSAFE, "DOCKER_PAT"),
    "aws-id": (("AK", "IA"), 16, UPPER, "AWS_ACCESS_KEY_ID"),
}


def credentials(seed: int) -> Iterator[Credential]:
    """Yield one credential of each kind."""
    s = Source(seed)
    for kind, (prefix, size, alphabet, name) in _PREFIXED.items():
        value = "".join(prefix) + s.of(size, alphabet)
        yield Credential(kind, name, value, value)
    ids = f"{s.of(12, string.digits)}-{s.of(13, string.digits)}"
    fine = s.of(22) + "_" + s.of(59)
    plain = {
        "github": ("GITHUB_TOKEN", github(s)),
        "github-fine": ("GH_TOKEN", "github" + "_pat_" + fine),
        "slack": ("SLACK_BOT_TOKEN", "xo" + f"xb-{ids}-{s.of(24)}"),
        "openai": (
            "OPENAI_API_KEY",
            "sk" + f"-proj-{s.of(74, URLSAFE)}T3Blbk" + f"FJ{s.of(74, URLSAFE)}",
        ),
        "sendgrid": ("SENDGRID_API_KEY", "S" + f"G.{s.of(22, URLSAFE)}.{s.of(43, URLSAFE)}"),
        "telegram": ("TELEGRAM_BOT_TOKEN", s.of(10, string.digits) + ":A" + f"A{s.of(33)}"),
        "azure-client": ("AZURE_CLIENT_SECRET", f"{s.of(3)}8" + f"Q~{s.of(34)}"),
        "aws-secret": ("AWS_SECRET_ACCESS_KEY", s.b64(30)),
        "azure-storage": ("AZURE_STORAGE_KEY", s.b64(64)),
        "password": ("DB_PASSWORD", password(s)),
        "password-symbols": ("SMTP_PASSWORD", password(s, symbols=True)),
        "hex": ("ENCRYPTION_KEY", s.of(64, HEX)),
        "hex-short": ("TWILIO_AUTH_TOKEN", s.of(32, HEX)),
        "base64": ("SESSION_SECRET", s.b64(32)),
        "generic": ("ACME_API_KEY", s.of(36)),
        "uuid": ("HEROKU_API_KEY", s.uuid()),
        "jwt": ("ACCESS_TOKEN", jwt(s)),
    }
    for kind, (name, value) in plain.items():
        yield Credential(kind, name, value, value)
    for kind, name, head, tail in (
        ("postgres", "DATABASE_URL", f"postgres://{s.word()}:", "@db1.internal:5432/main"),
        ("mongo", "MONGO_URI", "mongodb+srv://app:", "@cluster0.abcde.mongodb.net/main"),
        ("redis", "REDIS_URL", "redis://default:", "@cache.internal:6379/0"),
        ("address", "UPSTREAM", f"https://{s.word()}:", "@api.example.net/v1"),
    ):
        secret = password(s)
        yield Credential(kind, name, f"{head}{secret}{tail}", secret)
    secret = s.b64(64)
    head = f"DefaultEndpointsProtocol=https;AccountName={s.word()};AccountKey="
    tail = ";EndpointSuffix=core.windows.net"
    yield Credential("azure", "AZURE_STORAGE_CONNECTION_STRING", f"{head}{secret}{tail}", secret)
    hook, secret = "https://hooks.slack." + "com/services/", s.of(24)
    ids = f"T{s.of(10, UPPER)}/B{s.of(10, UPPER)}"
    yield Credential("slack-hook", "SLACK_WEBHOOK_URL", f"{hook}{ids}/{secret}", secret)


def _same(text: str) -> Callable[[Credential], tuple[str, str]]:
    """Return a context in which the secret stands as it is: `NAME`, `name` and `VALUE` are put."""

    def put(one: Credential) -> tuple[str, str]:
        named = text.replace("NAME", one.name).replace("name", one.name.lower())
        return named.replace("VALUE", one.value), one.secret

    return put


def _json_in_json(one: Credential) -> tuple[str, str]:
    inner = json.dumps({"cmd": ["bash", "-lc", f'{one.name}="{one.value}" ./run.sh']})
    return json.dumps({"type": "call", "payload": json.dumps({"args": inner})}), one.secret


def _query(one: Credential) -> tuple[str, str]:
    shown = quote(one.value, safe="")
    return f"GET https://api.example.net/v1/me?page=2&access_token={shown}&x=1", shown


def _base64(one: Credential) -> tuple[str, str]:
    head = f"{one.name}=" + " " * (-(len(one.name) + 1) % 3)
    whole = base64.b64encode(f"{head}{one.value}\nPORT=80\n".encode()).decode()
    at = len(head) + one.value.index(one.secret)
    first, last = -(-at // 3) * 4, (at + len(one.secret)) // 3 * 4
    return f"$ kubectl get secret app -o yaml | grep env\n  env: {whole}\n", whole[first:last]


def _wrapped(one: Credential) -> tuple[str, str]:
    half = one.value.index(one.secret) + len(one.secret) // 2
    left = one.secret[: len(one.secret) // 2]
    return f"{one.name}={one.value[:half]}\n{one.value[half:]}\n", left


CONTEXTS: dict[str, Callable[[Credential], tuple[str, str]]] = {
    "dotenv": _same('# local settings\nPORT=8080\nNAME="VALUE"\nDEBUG=1\n'),
    "export": _same("export NAME=VALUE\n"),
    "inline": _same("$ NAME='VALUE' ./run.sh --fast\n"),
    "yaml": _same("services:\n  web:\n    environment:\n      NAME: VALUE\n      TZ: UTC\n"),
    "json": _same('{\n  "env": {\n    "NAME": "VALUE",\n    "PORT": "80"\n  }\n}\n'),
    "json-in-json": _json_in_json,
    "diff": _same('@@ -1,2 +1,2 @@\n import os\n-NAME = os.environ["NAME"]\n+NAME = "VALUE"\n'),
    "numbered": _same('     1→import os\n     2→\n     3→NAME = "VALUE"\n     4→\n'),
    "cat-n": _same("     1\t[app]\n     2\tname = VALUE\n     3\tport = 80\n"),
    "curl": _same("curl -sS -H 'X-Api-Key: VALUE' https://api.example.net/v1/me\n"),
    "ansi": _same("\x1b[32mNAME\x1b[0m=\x1b[33mVALUE\x1b[0m\n\x1b[1mdone\x1b[0m\n"),
    "query": _query,
    "log": _same("2026-03-02T10:11:12Z INFO config: loaded name=VALUE from env (3 ms)\n"),
    "prose": _same("The request fails with a 401. Here is my name: VALUE - can you wire it in?"),
    "element": _same("<settings>\n  <name>VALUE</name>\n</settings>\n"),
    "attribute": _same('<add key="NAME" value="VALUE" />\n'),
    "sql": _same("CREATE USER app IDENTIFIED BY 'VALUE';\n"),
    "toml": _same('[auth]\nname = "VALUE"\nretries = 3\n'),
    "ini": _same("[auth]\nname = VALUE\nretries = 3\n"),
    "flag": _same("app serve --api-key VALUE --port 80\n"),
    "call": _same('client = Client(name="VALUE", timeout=3)\n'),
    "backticks": _same("Set `NAME=VALUE` in your shell, then run it again."),
    "base64": _base64,
    "wrapped": _wrapped,
}
#: Where an address or a connection string does not stand.
_TOKENS_ONLY = {"curl", "query", "flag", "sql"}


def is_apt(one: Credential, context: str) -> bool:
    """Return whether such a credential is found in such a place."""
    if one.is_address and context in _TOKENS_ONLY:
        return False
    if context == "sql":
        return one.kind.startswith("password")
    if context == "wrapped":  # halves of a short one are no longer than words
        return len(one.secret) >= 40
    return True


def armored(source: Source, name: str, *, lines: int = 8, width: int = 64) -> str:
    """Return a block of a private key; `name` is what its first line says it is."""
    body = "\n".join(source.of(width) for _ in range(lines))
    return f"-----BEGIN {name}-----\n{body}\n{source.of(21)}=\n-----END {name}-----\n"


def body_of(block: str) -> tuple[str, ...]:
    """Return the lines inside of an armored block."""
    return tuple(line for line in block.splitlines() if line and "-----" not in line)


def documents(seed: int) -> Iterator[Sample]:
    """Yield files and commands that have their own way to hold a secret."""
    s = Source(seed)
    for kind, name in (
        ("rsa", "RSA PRIVATE" + " KEY"),
        ("pkcs8", "PRIVATE" + " KEY"),
        ("ec", "EC PRIVATE" + " KEY"),
        ("openssh", "OPENSSH PRIVATE" + " KEY"),
    ):
        block = armored(s, name)
        yield Sample(kind, "file", f"$ cat {kind}\n{block}$ ", body_of(block))
        yield Sample(kind, "json", json.dumps({"key": block, "id": 1}), body_of(block))
    pgp = "PGP PRIVATE" + " KEY BLOCK"
    body = tuple(s.of(64) for _ in range(6))
    inside = "\n".join(body)
    text = f"-----BEGIN {pgp}-----\n\n{inside}\n=aB3d\n-----END {pgp}-----\n"
    yield Sample("pgp", "file", text, body)
    body = tuple(s.of(64) for _ in range(2))
    inside = "\n".join(body)
    yield Sample(
        "putty",
        "file",
        f"PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: {s.word()}\n"
        f"Public-Lines: 1\nAAAAC3NzaC1lZDI1NTE5\nPrivate-Lines: 2\n{inside}\n"
        f"Private-MAC: {s.of(64, HEX)}\n",
        body,
    )
    p = [password(s) for _ in range(16)]
    basic = base64.b64encode(f"{s.word()}:{p[0]}".encode()).decode()
    sid, hashed = s.of(32), s.of(53)
    encoded = base64.b64encode(p[1].encode()).decode()
    account = armored(s, "PRIVATE" + " KEY")
    for kind, text, secrets in (
        ("netrc", f"machine api.example.net\n  login me\n  password {p[2]}\n", (p[2],)),
        ("pgpass", f"db1.internal:5432:main:app:{p[3]}\n", (p[3],)),
        ("docker-config", json.dumps({"auths": {"hub.example": {"auth": basic}}}), (basic,)),
        (
            "kubernetes",
            f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: app\ndata:\n  password: {encoded}\n",
            (encoded.rstrip("="),),
        ),
        ("basic", f"> GET / HTTP/1.1\n> Authorization: Basic {basic}\n", (basic.rstrip("="),)),
        ("bearer", f"curl -H 'Authorization: Bearer {sid}' https://api.example.net/", (sid,)),
        ("cookie", f"Cookie: theme=dark; sessionid={sid}; lang=en\n", (sid,)),
        ("set-cookie", f"< Set-Cookie: sid={sid}; Path=/; HttpOnly\n", (sid,)),
        ("mysql", f"mysqldump -h db1 -u root -p{p[4]} --all-databases > dump.sql", (p[4],)),
        ("sshpass", f"sshpass -p '{p[5]}' ssh deploy@host uptime", (p[5],)),
        ("redis-cli", f"redis-cli -h cache -a {p[6]} ping", (p[6],)),
        ("curl-user", f"curl -u admin:{p[7]} https://api.example.net/", (p[7],)),
        ("remote", f"origin\thttps://oauth2:{p[8]}@git.example.net/a/b.git (fetch)", (p[8],)),
        ("odbc", f"Server=db1;Database=main;User Id=sa;Password={p[9]};Encrypt=yes", (p[9],)),
        ("jdbc", f"jdbc:postgresql://db1:5432/main?user=app&password={p[10]}&ssl=1", (p[10],)),
        ("npmrc", f"//npm.example.org/:_authToken={sid}\n", (sid,)),
        ("pip", f"[global]\nindex-url = https://ci:{p[11]}@pypi.example.net/simple\n", (p[11],)),
        ("tfvars", f'resource "db" "main" {{\n  password = "{p[12]}"\n}}\n', (p[12],)),
        ("connect", f'conn = connect(host="db1", user="app", password="{p[13]}")', (p[13],)),
        ("alter", f"ALTER ROLE app WITH PASSWORD '{p[14]}';", (p[14],)),
        ("htpasswd", "admin:$2" + f"y$10${hashed}\n", (hashed,)),
        (
            "service-account",
            json.dumps({"type": "service_account", "private_key": account}),
            body_of(account),
        ),
    ):
        yield Sample(kind, "file", text, secrets)


def positives(seed: int) -> list[Sample]:
    """Return each kind of credential in each place where it is found."""
    made = []
    for one in credentials(seed):
        for context, put in CONTEXTS.items():
            if is_apt(one, context):
                text, secret = put(one)
                assert context == "wrapped" or secret in text, (one.kind, context)
                made.append(Sample(one.kind, context, text, (secret,)))
    return [*made, *documents(seed)]


def negatives(seed: int) -> list[tuple[str, str]]:
    """Return kinds and texts that hold no credential and must stay as they are."""
    s = Source(seed)

    def sha(size: int = 40) -> str:
        return s.of(size, HEX)

    public = "AAAAB3NzaC1yc2EAAAADAQABAAABgQ" + s.of(300)
    return [
        ("git-log", f"commit {sha()}\nAuthor: Sam <sam@example.org>\n\n    Fix token refresh\n"),
        ("git-short", f"{sha(7)} feat: add api key page\n{sha(7)} fix: password reset\n"),
        ("git-index", f"diff --git a/auth.py b/auth.py\nindex {sha(7)}..{sha(7)} 100644\n"),
        ("uuid", json.dumps({"sessionId": s.uuid(), "parentUuid": s.uuid(), "type": "user"})),
        ("tool-id", json.dumps({"id": f"toolu_01{s.of(22)}", "name": "Bash", "input": {}})),
        ("call-id", json.dumps({"call_id": f"call_{s.of(24)}", "type": "function_call"})),
        (
            "yarn-lock",
            f'"@babel/core@^7.1.0":\n  version "7.23.0"\n  resolved "https://packages.example.net/'
            f'@babel/core/-/core-7.23.0.tgz#{sha()}"\n  integrity sha512-{s.b64(64)}\n',
        ),
        (
            "package-lock",
            json.dumps({"js-tokens": {"version": "4.0.0", "integrity": f"sha512-{s.b64(64)}"}}),
        ),
        ("cargo-lock", f'[[package]]\nname = "secrecy"\nchecksum = "{sha(64)}"\n'),
        ("poetry-lock", f'files = [{{file = "a-1.whl", hash = "sha256:{sha(64)}"}}]\n'),
        ("go-sum", f"github.com/golang-jwt/jwt/v5 v5.2.0 h1:{s.b64(32)}\n"),
        ("requirements", f"tokenizers==0.23.1 \\\n    --hash=sha256:{sha(64)}\n"),
        ("data-uri", f'<img src="data:image/png;base64,iVBORw0KGgo{s.b64(300)}">'),
        ("source-map", f"//# sourceMappingURL=data:application/json;base64,{s.b64(120)}"),
        ("sums", f"{sha(64)}  dist/app-1.0.tar.gz\n{sha(32)}  dist/app.zip\n"),
        ("digest", f"Digest: sha256:{sha(64)}\nStatus: Downloaded newer image\n"),
        ("sri", f'<script src="/a.js" integrity="sha384-{s.b64(48)}" crossorigin></script>'),
        ("asset", f'<link rel="stylesheet" href="/static/main.{sha(20)}.css">'),
        ("hub-path", f"/home/sam/.cache/hub/datasets--a--b/snapshots/{sha()}/data/train.parquet"),
        ("pod", f"pod/api-{s.of(9, HEX)}-x5k2p   1/1  Running\nuid: {s.uuid()}\n"),
        ("chain", f"tx hash 0x{sha(64)} block 0x{sha(64)} from 0x{sha()}"),
        ("trace", f"traceparent: 00-{sha(32)}-{sha(16)}-01 trace_id={sha(32)}"),
        ("fingerprint", f"The key fingerprint is:\nSHA256:{s.of(43)} sam@laptop\n"),
        ("public-key", f"ssh-rsa {public} sam@laptop"),
        ("certificate", armored(s, "CERTIFICATE")),
        ("public-pem", armored(s, "PUBLIC KEY")),
        ("build-id", f"ELF 64-bit LSB executable, BuildID[sha1]={sha()}, stripped\n"),
        ("etag", f'< ETag: "{sha(32)}"\n< Content-Length: 1204\n'),
        ("usage", json.dumps({"input_tokens": 18234, "cache_read_input_tokens": 129345})),
        ("dotenv-example", "API_KEY=your-api-key-here\nDB_PASSWORD=changeme\nTOKEN=<your token>\n"),
        ("placeholder", "export OPENAI_API_KEY=" + "sk-" + "x" * 24),
        ("aws-example", "AWS_ACCESS_KEY_ID=" + "AK" + "IAIOSFODNN7" + "EXAMPLE\n"),
        ("actions", "env:\n  NPM_TOKEN: ${{ secrets.NPM_TOKEN }}\n  KEY: ${{ secrets.KEY }}\n"),
        ("compose", "environment:\n  POSTGRES_PASSWORD: ${POSTGRES_PASSWORD:?set it}\n"),
        ("shell", 'export TOKEN="$(gh auth token)"\ncurl -H "Authorization: Bearer $TOKEN" "$URL"'),
        ("python", 'token = os.environ["GITHUB_TOKEN"]\npassword = getpass.getpass("Password: ")'),
        ("node", "const apiKey = process.env.OPENAI_API_KEY ?? config.apiKey;\n"),
        ("types", "interface Auth {\n  token: string;\n  password?: string | undefined;\n}\n"),
        ("rust", "let secret_key = SecretKey::from_bytes(&bytes)?;\nfn token(&self) -> &Token {"),
        ("go", "func (c *Client) SetAuthToken(token string) { c.authToken = token }\n"),
        ("store", "access_token = self._store.get('access_token')\nif access_token is None:\n"),
        ("test", 'def test_login(client):\n    r = client.login(password="password")\n'),
        ("masked", "password: ********\ntoken: ghp_****…****\nsecret=[hidden]\n"),
        ("cut", "OPENAI_API_KEY=" + "sk-" + "pro...  (cut)\n"),
        (
            "help",
            "  --token TOKEN        token for the API\n  --password-file FILE read it there\n",
        ),
        ("node-id", "tests/test_auth.py::test_refresh_token_expires_after_1h PASSED [ 12%]\n"),
        ("regex", r'TOKEN = re.compile(r"(?:password|secret|token)\s*[:=]\s*(\S+)")'),
        ("sql-schema", "CREATE TABLE users (id uuid PRIMARY KEY, password_hash text NOT NULL);\n"),
        ("key-ref", "valueFrom:\n  secretKeyRef:\n    name: app-secrets\n    key: database-url\n"),
        ("prose", "The secret to a good rotation is to keep two tokens valid for a day."),
        ("policy", "The password must have 14 characters; the token is sent as a bearer token."),
        ("snapshot", f'<tr data-key="{sha(24)}"><td class="css-1{s.of(5)}">token</td></tr>'),
        ("address", "https://docs.example.net/auth/tokens#create-a-personal-access-token"),
        ("ssh-config", "Host git\n  IdentityFile ~/.ssh/id_ed25519\n  PasswordAuthentication no\n"),
        (
            "minified",
            '!function(e){"use strict";var r=function(e){return e&&e.token?e.token:null}}',
        ),
        ("local-database", "DATABASE_URL=postgres://postgres:postgres@localhost:5432/test\n"),
        ("times", "session_key created 2026-03-02T10:11:12.123Z, token expires_in=3600\n"),
    ]
