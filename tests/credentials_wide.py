"""More credentials that open nothing: other providers, languages, programs and files.

As `tests/credentials.py`, made at run time from a seed, prefixes put together from pieces.
"""

import base64
import json
import string
from collections.abc import Iterator

from tests.credentials import (
    HEX,
    UPPER,
    URLSAFE,
    Sample,
    Source,
    armored,
    body_of,
    password,
)

LOWER = string.ascii_lowercase + string.digits
#: Kind, the name such a one has, and its value.
Named = tuple[str, str, str]


def prefixed(s: Source) -> Iterator[Named]:
    """Yield tokens that tell by their beginning what they are."""
    ids = f"{s.of(13, string.digits)}"
    for kind, name, *parts in (
        ("atlassian", "ATLASSIAN_API_TOKEN", "ATA", "TT3xFf", "GF0", s.of(180, URLSAFE)),
        ("sonar", "SONAR_TOKEN", "sq", "p_", s.of(40, HEX)),
        ("crates", "CARGO_REGISTRY_TOKEN", "ci", "o", s.of(32)),
        ("artifactory", "JFROG_API_KEY", "AK", "Cp8", s.of(69)),
        ("nuget", "NUGET_API_KEY", "oy", "2", s.of(43, LOWER)),
        ("rubygems", "GEM_HOST_API_KEY", "ruby", "gems_", s.of(48, HEX)),
        ("circleci", "CIRCLE_TOKEN", "CCI", "PAT_", s.of(22), "_", s.of(40, HEX)),
        ("buildkite", "BUILDKITE_TOKEN", "bk", "ua_", s.of(40, HEX)),
        ("terraform", "TFE_TOKEN", s.of(14), ".atlas", "v1.", s.of(67)),
        ("grafana", "GRAFANA_TOKEN", "gl", "sa_", s.of(32), "_", s.of(8, HEX)),
        (
            "slack-app",
            "SLACK_APP_TOKEN",
            "xa",
            "pp-1-A",
            s.of(10, UPPER),
            f"-{ids}-",
            s.of(64, HEX),
        ),
        ("airtable", "AIRTABLE_TOKEN", "pa", "t", s.of(14), ".", s.of(64, HEX)),
        ("hubspot", "HUBSPOT_TOKEN", "pa", "t-na1-", s.uuid()),
        ("stripe-key", "STRIPE_RESTRICTED_KEY", "r", "k_live_", s.of(99)),
        ("openrouter", "OPENROUTER_API_KEY", "s", "k-or-v1-", s.of(64, HEX)),
        ("langfuse", "LANGFUSE_SECRET_KEY", "s", "k-lf-", s.uuid()),
        ("nvidia", "NVIDIA_API_KEY", "nv", "api-", s.of(64, URLSAFE)),
        ("typeform", "TYPEFORM_TOKEN", "tf", "p_", s.of(40, URLSAFE), "_", s.of(14, LOWER)),
        ("sendinblue", "BREVO_API_KEY", "xkey", "sib-", s.of(64, HEX), "-", s.of(16)),
        ("twitter", "TWITTER_BEARER_TOKEN", "A" * 21, s.of(9), "%2B", s.of(12), "%3D", s.of(50)),
    ):
        yield kind, name, "".join(parts)


def plain(s: Source) -> Iterator[Named]:
    """Yield values that nothing but their name tells."""
    yield from (
        ("letters", "COHERE_API_KEY", s.of(40)),
        ("upper", "VULTR_API_KEY", s.of(36, UPPER)),
        ("hex", "WANDB_API_KEY", s.of(40, HEX)),
        ("uuid", "EXA_API_KEY", s.uuid()),
        ("urlsafe", "AUTH0_CLIENT_SECRET", s.of(64, URLSAFE)),
        ("padded", "FERNET_KEY", base64.urlsafe_b64encode(s.randbytes(32)).decode()),
        ("base", "SECRET_KEY_BASE", s.of(128, HEX)),
        ("wallet", "DEPLOYER_PRIVATE_KEY", "0x" + s.of(64, HEX)),
        ("parts", "BWS_ACCESS_TOKEN", f"0.{s.uuid()}.{s.of(30)}:{s.b64(16)}"),
        ("pat", "AZURE_DEVOPS_PAT", s.of(84)),
        ("token-secret", "MODAL_TOKEN_SECRET", "a" + f"s-{s.of(22)}"),
        ("chosen", "SMTP_PASSWORD", f"{s.word().title()}{s.of(4, string.digits)}!"),
        ("chosen-lower", "FTP_PASS", f"{s.word()}-{s.word()}{s.of(3, string.digits)}$"),
        ("digits", "KEYCHAIN_PASSWORD", s.of(8, "3456789")),
        ("generated", "REDIS_PASSWORD", s.of(20, LOWER)),
    )


#: Where a value stands as it is: `NAME`, `name`, `camel`, `ke-bab` and `VALUE` are put.
PLACES = {
    "yaml-list": 'env:\n  - name: NAME\n    value: "VALUE"\n  - name: PORT\n    value: "80"\n',
    "yaml-block": "stringData:\n  NAME: |\n    VALUE\n",
    "yaml-dash": "environment:\n  - NAME=VALUE\n  - TZ=UTC\n",
    "properties": "spring.app.ke-bab=VALUE\nserver.port=8080\n",
    "dockerfile": "FROM alpine\nENV NAME VALUE\nRUN make\n",
    "docker-run": "docker run -d -e NAME=VALUE -p 80:80 app:latest",
    "systemd": '[Service]\nEnvironment="NAME=VALUE"\nExecStart=/bin/app\n',
    "javascript": "const camel = 'VALUE';\n",
    "object": "module.exports = { camel: 'VALUE', port: 1 };",
    "fallback": "const key = process.env.NAME || 'VALUE';",
    "environ": 'os.environ["NAME"] = "VALUE"\n',
    "getenv": 'x = os.getenv("NAME", "VALUE")\n',
    "repr": "{'NAME': 'VALUE', 'PORT': '80'}",
    "tuple": "[('NAME', 'VALUE'), ('HOME', '/root')]",
    "typed": "name: str = 'VALUE'\n",
    "go": 'os.Setenv("NAME", "VALUE")\n',
    "java": 'private static final String NAME = "VALUE";\n',
    "rust": 'const NAME: &str = "VALUE";\n',
    "php": "define('NAME', 'VALUE');\n",
    "ruby": "ENV['NAME'] = 'VALUE'\n",
    "history": ": 1733200000:0;export NAME=VALUE\n: 1733200009:0;ls\n",
    "fish": "set -gx NAME VALUE\n",
    "setenv": "setenv NAME VALUE\n",
    "powershell": '$env:NAME = "VALUE"\n',
    "dotnet": '[Environment]::SetEnvironmentVariable("NAME", "VALUE", "User")\n',
    "setx": 'setx NAME "VALUE"\n',
    "gh": 'gh secret set NAME --body "VALUE" -R a/b\n',
    "piped": "echo 'VALUE' | gh secret set NAME\n",
    "kubectl": "kubectl create secret generic app --from-literal=ke-bab=VALUE\n",
    "helm": "helm upgrade app ./chart --set auth.camel=VALUE\n",
    "tfvar": "terraform apply -var='name=VALUE'\n",
    "make": "deploy: export NAME := VALUE\n",
    "table": "| name | value |\n|---|---|\n| `NAME` | `VALUE` |\n",
    "bullet": "- **NAME**: `VALUE`\n",
    "csv": "name,value\nNAME,VALUE\n",
    "tabs": "NAME\tVALUE\nPORT\t80\n",
    "json-pair": '[\n  {\n    "name": "NAME",\n    "value": "VALUE"\n  }\n]\n',
    "debug": 'DEBUG: Config { name: "VALUE", port: 80 }\n',
    "grep": 'src/app.py:12:\x1b[01;31m\x1b[KNAME\x1b[m\x1b[K="VALUE"\n',
    "diff": "-NAME=VALUE\n+NAME=${NAME}\n",
    "quoted": 'I set NAME to "VALUE" in the dashboard.',
    "escaped": "PORT=1\\nNAME=VALUE\\nX=2",
    "crlf": "PORT=1\r\nNAME=VALUE\r\nX=2\r\n",
    "heredoc": "cat > .env <<EOF\nNAME=VALUE\nEOF\n",
    "mcp": '{"command": "npx", "args": ["-y", "srv", "--ke-bab", "VALUE"]}',
}


def _put(text: str, name: str, value: str) -> str:
    words = name.lower().split("_")
    camel = words[0] + "".join(word.title() for word in words[1:])
    for mark, given in (
        ("NAME", name),
        ("ke-bab", "-".join(words)),
        ("camel", camel),
        ("VALUE", value),
    ):
        text = text.replace(mark, given)
    return text


def placed(seed: int) -> Iterator[Sample]:
    """Yield each value in each place."""
    s = Source(seed)
    for kind, name, value in (*prefixed(s), *plain(s)):
        for context, text in PLACES.items():
            lower = text.replace("name: str", name.lower() + ": str").replace(
                "{ name:", "{ " + name.lower() + ":"
            )
            lower = lower.replace("'name=", f"'{name.lower()}=")
            yield Sample(kind, context, _put(lower, name, value), (value,))


def alone(seed: int) -> Iterator[Sample]:
    """Yield tokens that tell what they are, without a name."""
    for kind, _, value in prefixed(Source(seed)):
        if kind == "twitter":
            continue
        for context, text in (
            ("line", "$ pbpaste\nVALUE\n"),
            ("sentence", "try with VALUE, thanks."),
            ("quoted", "print('VALUE')"),
            ("cut-off", "see VALUE... and so on"),
        ):
            yield Sample(kind, context, text.replace("VALUE", value), (value,))


#: Words for a password in other languages.
_WORDS = (
    "Passwort", "Kennwort", "mot de passe", "contraseña", "senha", "parola", "пароль", "密码",
    "パスワード", "비밀번호", "wachtwoord", "hasło", "lösenord",
)  # fmt: skip


def files(seed: int) -> Iterator[Sample]:
    """Yield files, commands and dialogues that have their own way to hold a secret."""
    s = Source(seed)
    p = [password(s) for _ in range(24)]
    texts: list[tuple[str, str, str]] = [
        (f"word-{word}", f"{word}: {secret}\n", secret)
        for word, secret in ((word, password(s)) for word in _WORDS)
    ]
    key = s.of(43, URLSAFE)
    phrase = " ".join(s.sample(_BIP, 12))
    words = "-".join(s.sample(_BIP, 5))
    texts += [
        ("full-width", f"密码：{p[0]}\n", p[0]),
        ("sentence", f"Das Passwort ist {p[1]}, bitte ändern", p[1]),
        ("sudo", f"echo '{p[2]}' | sudo -S apt update\n", p[2]),
        ("chpasswd", f"echo 'root:{p[3]}' | chpasswd\n", p[3]),
        ("registry", f"echo {p[4]} | docker login -u sam --password-stdin\n", p[4]),
        ("prompt", f"[sudo] password for sam: {p[5]}\n", p[5]),
        ("requirepass", f"requirepass {p[6]}\nport 6379\n", p[6]),
        ("redis", f"127.0.0.1:6379> AUTH {p[7]}\nOK\n", p[7]),
        ("ftp", f"USER sam\nPASS {p[8]}\n230 ok\n", p[8]),
        ("samba", f"smbclient //h/s -U 'sam%{p[9]}'\n", p[9]),
        ("remote-desktop", f"xfreerdp /u:sam /p:{p[10]} /v:host\n", p[10]),
        ("requests", f'requests.get(url, auth=("sam", "{p[11]}"))', p[11]),
        ("go-source", f"sam:{p[12]}@tcp(127.0.0.1:3306)/app?parseTime=true", p[12]),
        ("oracle", f"jdbc:oracle:thin:scott/{p[13]}@//db:1521/x", p[13]),
        ("slash", f"creds: admin / {p[14]}\n", p[14]),
        ("login-sql", f"CREATE LOGIN sam WITH PASSWORD = N'{p[15]}';", p[15]),
        ("keystore", f"keytool -genkey -storepass {p[16]} -alias a\n", p[16]),
        ("sshpass", f"SSHPASS={p[17]} sshpass -e ssh x\n", p[17]),
        ("short-name", json.dumps({"user": "sam", "pw": p[18]}), p[18]),
        ("wireless", f'network={{\n  ssid="home"\n  psk="{p[19]}"\n}}', p[19]),
        ("prose", f"user is sam and pass is {p[20]}", p[20]),
        ("next-line", f"Password:\n{p[21]}\n", p[21]),
        ("netrc", f"machine example.com login sam password {p[22]}\n", p[22]),
        ("jwk", json.dumps({"kty": "EC", "crv": "P-256", "d": key}), key),
        ("node", f"https://mainnet.infura.io/v3/{key[:32]}", key[:32]),
        ("jar", f".example.com\tTRUE\t/\tTRUE\t1799999999\tsid\t{key}\n", key),
        ("cookies", f"cookies={{'sid': '{key}'}}", key),
        ("wallet", f"seed phrase: {phrase}\n", phrase),
        ("mnemonic", f'MNEMONIC="{phrase}"\n', phrase),
        ("words", f"passphrase: {words}\n", words),
        ("words-quoted", f'password: "{words.replace("-", " ")}"\n', words.replace("-", " ")),
        ("words-env", f"DB_PASSWORD={words.replace('-', '.')}\n", words.replace("-", ".")),
    ]
    yield from (Sample(kind, "file", text, (secret,)) for kind, text, secret in texts)
    tunnel = armored(s, "OpenVPN Static" + " key V1", lines=16, width=32)
    yield Sample("tunnel", "file", tunnel, body_of(tunnel))


#: Words of the list that wallets take theirs from.
_BIP = (  # noqa: SIM905 - shorter to read
    "ozone drill grab fiber curtain grace pudding thank cruise elder eight picnic legal winner "
    "wave sausage worth useful zebra crumble copper velvet anchor puzzle"
).split()


def harmless(seed: int) -> list[tuple[str, str]]:
    """Return kinds and texts that hold no credential and must stay as they are."""
    s = Source(seed)
    sha = s.of(40, HEX)
    certificate = armored(s, "CERTIFICATE")
    cut = certificate.replace("\n", "KEY\n", 2)
    return [
        ("certificate", cut),
        ("labels", '{\n  "password": "Enter your new password",\n  "token": "Access token"\n}\n'),
        ("labels-de", "password: Passwort vergessen\nsubmit: Weiter\n"),
        ("constants", "ATTR_AWS_S3_KEY, ATTR_AWS_S3_PART_NUMBER, ATTR_AWS_S3_UPLOAD_ID\n"),
        ("identifiers", "'CopySourceSSECustomerKey',\n 'CopySourceSSECustomerKeyMD5'\n"),
        ("types", "authorization?: APIKeyAuth | OAuth2TokenAuth;\n"),
        ("algorithm", "srvHostKey: 'rsa-sha2-512',\n"),
        ("idempotency", json.dumps({"ChangeToken": s.uuid(), "NextToken": s.of(48)})),
        ("strong-name", 'publicKeyToken="' + s.of(16, HEX) + '"'),
        ("docs", "the username and password should match what the registry expects\n"),
        ("help", "  --password PASSWORD   read from the terminal when missing\n"),
        ("f-string", 'print(f"password={password!r}")\n'),
        ("counter", "const startToken = ++this.autocompleteStartToken;\n"),
        ("fixtures", 'client.login(username="sam", password="password123")\n'),
        ("wrong", 'assert not check(password="wrong-password-1")\n'),
        ("react", f'<tr data-key="{s.of(24, HEX)}">\n'),
        ("commit", f"Fix the access token\n\ncommit {sha}\n"),
        ("model", "MODEL_KEY=claude-sonnet-4-5-20250929\nTOKENIZER=cl100k_base\n"),
        ("draw", '<path d="M12 2L22 7v10"/>\n'),
        ("next", f'tokensUsed: 18234, maxTokens: 200000, sha: "{sha}"\n'),
        ("address", f'tokenAddress: "0x{s.of(40, HEX)}"\n'),
        ("login", 'router.post("/login", "authController.login")\n'),
        ("echo", 'echo "done" | tee -a log.txt\n'),
        ("cut", "Authorization: Bearer " + "eyJ" + "hbGci...\n"),
        ("phrase", "The passphrase is asked for when the key is first used.\n"),
        ("cookies", "cookies={'theme': 'dark-blue', 'lang': 'en'}"),
        ("pass", "pass through the values of each row\nPASS tests/test_auth.py::test_login\n"),
        ("account", "account: billing/overview-of-usage\n"),
    ]
