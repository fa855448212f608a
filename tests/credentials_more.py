"""Kinds and places that the rules were not written with: to see how far the families reach.

As `tests/credentials.py`, made at run time from a seed, prefixes put together from pieces.
"""

import base64
import json
import string
from collections.abc import Callable, Iterator
from urllib.parse import quote

from tests.credentials import ALNUM, HEX, UPPER, URLSAFE, Sample, Source, jwt, password

LOWER = string.ascii_lowercase + string.digits
DIGITS = string.digits
Named = tuple[str, str, str]

#: Kind, name, and the value: what is in braces is made, `{36}` of letters and digits, `{20:hex}` of
#: others; `|` only parts a prefix.
_FORMS = """
xai XAI_API_KEY xa|i-{80}
fireworks FIREWORKS_API_KEY fw|_{24}
together TOGETHER_API_KEY {64:hex}
deepseek DEEPSEEK_API_KEY s|k-{32:hex}
cerebras CEREBRAS_API_KEY cs|k-{48:lower}
anthropic-admin ANTHROPIC_ADMIN_KEY s|k-ant-admin01-{93:url}AA
openai-service OPENAI_API_KEY s|k-svcacct-{58:url}T3Blbk|FJ{58:url}
openai-old OPENAI_API_KEY s|k-{20}T3Blbk|FJ{20}
azure-openai AZURE_OPENAI_API_KEY {32:hex}
azure-openai-long AZURE_OPENAI_KEY {52}JQQJ99{26}
azure-devops AZURE_DEVOPS_EXT_PAT {52:lower}
service-bus SERVICE_BUS_KEY {b64:32}
google-refresh GOOGLE_REFRESH_TOKEN 1//0{61:url}
google-access GOOGLE_OAUTH_ACCESS_TOKEN ya29.|a0{120:url}
aws-session AWS_SESSION_TOKEN IQoJb3JpZ2lu{b64:240}
aws-bedrock AWS_BEARER_TOKEN_BEDROCK ABSK|{b64:80}
alibaba ALIBABA_CLOUD_ACCESS_KEY_SECRET {30}
alibaba-id ALIBABA_CLOUD_ACCESS_KEY_ID LTA|I5t{20}
tencent TENCENTCLOUD_SECRET_ID AKI|D{32}
tencent-key TENCENTCLOUD_SECRET_KEY {32}
ibm IBMCLOUD_API_KEY {44:url}
yandex YC_TOKEN y0_|AgAAAA{50:url}
yandex-key YANDEX_API_KEY AQV|N{36:url}
ovh OVH_APPLICATION_SECRET {32}
hetzner HCLOUD_TOKEN {64}
linode LINODE_TOKEN {64:hex}
scaleway SCW_SECRET_KEY {uuid}
mailgun MAILGUN_API_KEY {32:hex}-{8:hex}-{8:hex}
mailchimp MAILCHIMP_API_KEY {32:hex}-us14
twilio TWILIO_AUTH_TOKEN {32:hex}
plaid PLAID_SECRET {30:hex}
paypal PAYPAL_CLIENT_SECRET E{79:url}
braintree BRAINTREE_PRIVATE_KEY {32:hex}
adyen ADYEN_API_KEY AQE|{b64:60}
bitbucket BITBUCKET_APP_PASSWORD ATB|B{32}
jira JIRA_API_TOKEN {24}
travis TRAVIS_TOKEN {22:url}
drone DRONE_TOKEN {32}
jenkins JENKINS_API_TOKEN 11{32:hex}
snyk SNYK_TOKEN {uuid}
pulumi PULUMI_ACCESS_TOKEN pu|l-{40:hex}
consul CONSUL_HTTP_TOKEN {uuid}
planetscale PLANETSCALE_TOKEN pscale|_tkn_{43:url}
neon NEON_API_KEY napi|_{64:lower}
upstash UPSTASH_REDIS_REST_TOKEN AX{54}Ng
supabase SUPABASE_SERVICE_ROLE_KEY {jwt}
firebase FIREBASE_TOKEN 1//{60:url}
algolia ALGOLIA_ADMIN_KEY {32:hex}
mapbox MAPBOX_SECRET_TOKEN s|k.eyJ1Ijoi{60}.{22:url}
okta OKTA_API_TOKEN 00{40:url}
clerk CLERK_SECRET_KEY s|k_test_{42}
vercel VERCEL_TOKEN {24}
vercel-blob BLOB_READ_WRITE_TOKEN vercel|_blob_rw_{16}_{30}
render RENDER_API_KEY rn|d_{32}
fly FLY_API_TOKEN fo1|_{43:url}
cloudflare CLOUDFLARE_API_TOKEN {40:url}
pagerduty PAGERDUTY_TOKEN u+{18:url}
opsgenie OPSGENIE_API_KEY {uuid}
rollbar ROLLBAR_ACCESS_TOKEN {32:hex}
segment SEGMENT_WRITE_KEY {32}
mixpanel MIXPANEL_API_SECRET {32:hex}
posthog POSTHOG_PERSONAL_API_KEY ph|x_{43}
launchdarkly LAUNCHDARKLY_SDK_KEY sd|k-{uuid}
ngrok NGROK_AUTHTOKEN {27}_{21}
tailscale TS_AUTHKEY tskey|-auth-{12}CNTRL-{32}
elastic ELASTIC_API_KEY {b64:42}
splunk SPLUNK_HEC_TOKEN {uuid}
honeycomb HONEYCOMB_API_KEY hcaik|_{58:lower}
axiom AXIOM_TOKEN xaa|t-{uuid}
resend RESEND_API_KEY r|e_{8}_{24}
postmark POSTMARK_SERVER_TOKEN {uuid}
intercom INTERCOM_ACCESS_TOKEN dG9r{b64:48}
zendesk ZENDESK_API_TOKEN {40}
dropbox DROPBOX_ACCESS_TOKEN s|l.{140:url}
contentful CONTENTFUL_MANAGEMENT_TOKEN CFP|AT-{43:url}
sanity SANITY_API_TOKEN s|k{180}
webflow WEBFLOW_TOKEN {64:hex}
discord-secret DISCORD_CLIENT_SECRET {32:url}
spotify SPOTIFY_CLIENT_SECRET {32:hex}
reddit REDDIT_CLIENT_SECRET {27:url}
deepgram DEEPGRAM_API_KEY {40:hex}
elevenlabs ELEVENLABS_API_KEY s|k_{48:hex}
assemblyai ASSEMBLYAI_API_KEY {32:hex}
pinecone PINECONE_API_KEY pcs|k_{6}_{58}
qdrant QDRANT_API_KEY {jwt}
langsmith LANGSMITH_API_KEY lsv2|_pt_{32:hex}_{10:hex}
tavily TAVILY_API_KEY tv|ly-dev-{32}
brave BRAVE_API_KEY BS|A{27}
serper SERPER_API_KEY {40:hex}
firecrawl FIRECRAWL_API_KEY f|c-{32:hex}
stability STABILITY_API_KEY s|k-{48}
rails RAILS_MASTER_KEY {32:hex}
laravel APP_KEY base64:{b64:32}
django DJANGO_SECRET_KEY {django}
flask FLASK_SECRET_KEY {48:hex}
wireguard PRIVATE_KEY {b64:32}
jwt-secret JWT_SECRET {b64:48}
hmac WEBHOOK_SIGNING_KEY {40:lower}
etherscan ETHERSCAN_API_KEY {34:upper}
solana WALLET_PRIVATE_KEY {87}
postgres PGPASSWORD {20}
mysql MYSQL_PWD {16}
admin ADMIN_PASS {sym}
root MARIADB_ROOT_PASSWORD {sym}
smtp SMTP_PASS {16:low}
restic RESTIC_PASSWORD {sym}
ansible ANSIBLE_BECOME_PASS {18}
passphrase SSH_PASSPHRASE {sym}
invented TUNDRA_INGEST_KEY {28}
invented-token ZORPLE_TOKEN {21:lower}
invented-secret QUUXLY_SIGNING_SECRET {44:url}
invented-prefix KITEBOX_API_KEY kb|x_live_{32}
invented-pat MARROW_PAT mrw|pat-{26:lower}
invented-auth LOOMBASE_AUTH {33}
invented-creds DRIFTLY_CREDENTIALS {31}
"""

_ALPHABETS = {
    "hex": HEX, "url": URLSAFE, "upper": UPPER, "lower": LOWER, "low": string.ascii_lowercase,
}  # fmt: skip


def _made(s: Source, form: str) -> str:
    """Return what stands in braces."""
    if form == "uuid":
        return s.uuid()
    if form == "jwt":
        return jwt(s)
    if form == "sym":
        return password(s, symbols=True)
    if form == "django":
        return s.of(50, "abcdefghijklmnopqrstuvwxyz0123456789!@#$%^&*(-_=+)")
    if form.startswith("b64:"):
        return s.b64(int(form[4:]))
    size, _, alphabet = form.partition(":")
    return s.of(int(size), _ALPHABETS.get(alphabet, ALNUM))


def named(seed: int) -> Iterator[Named]:
    """Yield one credential of each kind with the name it has in an environment."""
    s = Source(seed)
    for line in _FORMS.strip().splitlines():
        kind, name, form = line.split()
        parts = form.replace("|", "").split("{")
        value = parts[0]
        for part in parts[1:]:
            inside, _, after = part.partition("}")
            value += _made(s, inside) + after
        yield kind, name, value


def _camel(name: str) -> str:
    first, *rest = name.lower().split("_")
    return first + "".join(map(str.title, rest))


def _same(text: str) -> Callable[[str, str], tuple[str, str]]:
    """Return a place in which the value stands as it is."""

    def put(name: str, value: str) -> tuple[str, str]:
        shown = text
        for mark, given in (
            ("ke-bab", name.lower().replace("_", "-")),
            ("caMel", _camel(name)),
            ("NaMe", "".join(map(str.title, name.split("_")))),
            ("NAME", name),
            ("sna_ke", name.lower()),
            ("VALUE", value),
        ):
            shown = shown.replace(mark, given)
        return shown, value

    return put


def _json_twice(name: str, value: str) -> tuple[str, str]:
    inner = json.dumps({"env": {name: value}, "cwd": "/srv/app"})
    return json.dumps({"type": "tool", "input": json.dumps({"body": inner})}), value


def _query(name: str, value: str) -> tuple[str, str]:
    shown = quote(value, safe="")
    return f"GET https://api.example.org/v2/items?limit=5&{name.lower()}={shown}\n", shown


def _fragment(_: str, value: str) -> tuple[str, str]:
    shown = quote(value, safe="")
    return f"http://localhost:8080/callback#access_token={shown}&token_type=bearer\n", shown


def _encoded(name: str, value: str, depth: int = 1) -> tuple[str, str]:
    whole = f"{name}={value}\n"
    for _ in range(depth):
        whole = base64.b64encode(whole.encode()).decode()
    return f"userData: {whole}\n", whole[12:-12]


def _twice(name: str, value: str) -> tuple[str, str]:
    return _encoded(name, value, 2)


def _cluster(name: str, value: str) -> tuple[str, str]:
    whole = base64.b64encode(value.encode()).decode()
    head = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: app\ntype: Opaque\ndata:\n"
    return f"{head}  {name}: {whole}\n", whole.rstrip("=")


def _basic(_: str, value: str) -> tuple[str, str]:
    whole = base64.b64encode(f"api:{value}".encode()).decode()
    return f"> POST /v1 HTTP/1.1\n> authorization: Basic {whole}\n", whole[8:].rstrip("=")


def _coloured(name: str, value: str) -> tuple[str, str]:
    return f"\x1b[1;34m{name}\x1b[0;39m: \x1b[38;5;208m'{value}'\x1b[0m,\r\n", value


def _wrapped(name: str, value: str) -> tuple[str, str]:
    half = len(value) // 2
    return f'export {name}="{value[:half]}\\\n{value[half:]}"\n', value[:half]


def _added(name: str, value: str) -> tuple[str, str]:
    half = len(value) // 2
    return f'{_camel(name)} := "{value[:half]}" +\n\t"{value[half:]}"\n', value[:half]


def _unicode(name: str, value: str) -> tuple[str, str]:
    return f"{{\\u0022{name}\\u0022: \\u0022{value}\\u0022}}\n", value


def _repr_of_bytes(name: str, value: str) -> tuple[str, str]:
    return f"environ({{b'PATH': b'/usr/bin', b'{name}': b'{value}'}})\n", value


PLACES: dict[str, Callable[[str, str], tuple[str, str]]] = {
    "dotenv": _same("NODE_ENV=production\nNAME=VALUE\nPORT=3000\n"),
    "export": _same("$ export NAME='VALUE' && make deploy\n"),
    "docker": _same("docker run --rm -it --env NAME=VALUE -v $PWD:/app img:1 sh\n"),
    "compose": _same("services:\n  db:\n    environment:\n      - NAME=VALUE\n"),
    "yaml": _same("app:\n  caMel: VALUE\n  debug: false\n"),
    "yaml-quoted": _same('production:\n  sna_ke: "VALUE"\n'),
    "toml": _same('[tool.app]\nsna_ke = "VALUE"\n'),
    "ini": _same("[default]\nregion = eu\nsna_ke = VALUE\n"),
    "json": _same('{"host": "h", "caMel": "VALUE", "ssl": true}'),
    "json-twice": _json_twice,
    "unicode": _unicode,
    "header": _same("curl -s -X POST https://x.example.org/v1 -H 'X-Auth-Token: VALUE'\n"),
    "bearer": _same("> GET /v1/me HTTP/2\n> authorization: Bearer VALUE\n> accept: */*\n"),
    "basic": _basic,
    "query": _query,
    "fragment": _fragment,
    "userinfo": _same("fatal: unable to access 'https://x-token:VALUE@git.example.org/a.git/'\n"),
    "cluster": _cluster,
    "terraform": _same('provider "x" {\n  sna_ke = "VALUE"\n  region = "eu"\n}\n'),
    "tfvar-env": _same("TF_VAR_sna_ke=VALUE terraform plan\n"),
    "helm": _same("helm install app . --set-string secrets.caMel=VALUE\n"),
    "python": _same('SETTINGS = {\n    "NAME": "VALUE",\n}\n'),
    "keyword": _same("client = Api(timeout=3, sna_ke='VALUE', retries=2)\n"),
    "traceback": _same(
        'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n'
        "    connect(sna_ke='VALUE')\nValueError: no route\n"
    ),
    "locals": _same("  sna_ke = 'VALUE'\n  self = <app.Client object at 0x7f2a1c3d4e50>\n"),
    "log": _same("2026-05-01 10:00:00,123 DEBUG [main] a.b.Config - NAME=VALUE timeout=30\n"),
    "log-json": _same('{"level":"info","msg":"boot","cfg":{"sna_ke":"VALUE"},"ts":1714550400}\n'),
    "printed": _same("$ printenv | sort\nHOME=/root\nNAME=VALUE\nSHLVL=1\n"),
    "set-x": _same("+ NAME=VALUE\n+ ./deploy.sh\n"),
    "chat": _same("ok so the NAME is VALUE, put it in the vault pls\n"),
    "chat-code": _same("Sure! Set `NAME` to `VALUE` and restart the worker.\n"),
    "markdown": _same("| Variable | Value | Note |\n|---|---|---|\n| NAME | VALUE | prod |\n"),
    "csv": _same("key,value,env\nNAME,VALUE,prod\n"),
    "coloured": _coloured,
    "wrapped": _wrapped,
    "added": _added,
    "base64": _encoded,
    "base64-twice": _twice,
    "bytes": _repr_of_bytes,
    "kotlin": _same('const val NAME = "VALUE"\n'),
    "csharp": _same('public string NaMe { get; set; } = "VALUE";\n'),
    "swift": _same('let caMel: String = "VALUE"\n'),
    "java": _same('.withNaMe("VALUE")\n'),
    "setter": _same('config.setNaMe("VALUE");\n'),
    "perl": _same("$ENV{NAME} = 'VALUE';\n"),
    "elixir": _same('config :app, sna_ke: "VALUE"\n'),
    "lisp": _same('(setenv "NAME" "VALUE")\n'),
    "lua": _same("local sna_ke = [[VALUE]]\n"),
    "batch": _same("C:\\app> set NAME=VALUE\r\n"),
    "option": _same("app login --ke-bab=VALUE --yes\n"),
    "option-apart": _same("app login --ke-bab VALUE --yes\n"),
    "argv": _same('["app", "--ke-bab", "VALUE", "--yes"]\n'),
    "plist": _same("<dict>\n  <key>caMel</key>\n  <string>VALUE</string>\n</dict>\n"),
    "xml-attribute": _same('<property name="ke-bab" value="VALUE"/>\n'),
    "secret-file": _same("$ cat /run/secrets/sna_ke\nVALUE\n$ \n"),
    "gitlab-ci": _same("variables:\n  NAME:\n    value: VALUE\n    description: x\n"),
    "k8s-env": _same('        - name: NAME\n          value: "VALUE"\n'),
    "diff-removed": _same("--- a/.env\n+++ b/.env\n-NAME=VALUE\n+NAME=\n"),
    "grep": _same("config/prod.env:14:NAME=VALUE\n"),
    "blame": _same('3f2a9c1d (Sam 2026-01-02 10:11:12 +0100 12) NAME = "VALUE"\n'),
    "typescript": _same("const config: Config = { sna_ke: `VALUE`, retries: 3 };\n"),
    "http-body": _same("POST /login HTTP/1.1\r\n\r\nuser=sam&sna_ke=VALUE&x=1\r\n"),
    "comment": _same("# old NAME: VALUE (rotate!)\n"),
}

#: Places that only have what stands in addresses and headers as it is.
_URL_SAFE = {"userinfo", "fragment", "query", "header", "bearer", "http-body"}


def is_apt(kind: str, value: str, place: str) -> bool:
    """Return whether such a value is found in such a place."""
    if place in _URL_SAFE and not value.replace("-", "").replace("_", "").isalnum():
        return False
    if place in ("wrapped", "added"):
        return len(value) >= 40
    return not (place in _URL_SAFE and kind == "smtp")


def placed(seed: int) -> Iterator[Sample]:
    """Yield each kind in each place where it is found."""
    for kind, name, value in named(seed):
        for place, put in PLACES.items():
            if is_apt(kind, value, place):
                text, secret = put(name, value)
                assert secret in text, (kind, place)
                yield Sample(kind, place, text, (secret,))
