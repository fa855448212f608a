"""More of what only looks like a credential, made at run time: ids, digests, paths, and code.

As `negatives` of `tests/credentials.py`.
"""

import json
import string
from collections.abc import Iterator

from tests.credentials import HEX, UPPER, Source

LOWER = string.ascii_lowercase + string.digits
#: Crockford's alphabet, in which times with chance are written.
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def _values(s: Source) -> dict[str, str]:
    """Return values that are no secret wherever they stand, by what they are called."""
    sha1, sha256, uuid = s.of(40, HEX), s.of(64, HEX), s.uuid()
    return {
        "commit": sha1,
        "short_commit": s.of(7, HEX),
        "checksum": sha256,
        "sha512": s.of(128, HEX),
        "md5": s.of(32, HEX),
        "digest": f"sha256:{sha256}",
        "integrity": f"sha512-{s.b64(64)}",
        "go_sum": f"h1:{s.b64(32)}",
        "image": f"registry.example.net/app@sha256:{sha256}",
        "session_id": uuid,
        "request_id": s.uuid(),
        "trace_id": s.of(32, HEX),
        "span_id": s.of(16, HEX),
        "rollout": f"rollout-2026-03-02T10-11-12-{s.uuid()}.jsonl",
        "message_id": f"msg_01{s.of(22)}",
        "tool_use_id": f"toolu_01{s.of(22)}",
        "call_id": f"call_{s.of(24)}",
        "response_id": f"resp_{s.of(48, HEX)}",
        "request": f"req_01{s.of(22)}",
        "completion": f"chatcmpl-{s.of(29)}",
        "ulid": "01" + s.of(24, _CROCKFORD),
        "object_id": s.of(24, HEX),
        "etag": f'W/"{s.of(32, HEX)}"'.replace('"', ""),
        "machine_id": s.of(32, HEX),
        "build": f"20260302.{s.of(3, '123456789')}-{s.of(7, HEX)}",
        "version": "1.2.3-rc.4+build.5678",
        "fingerprint": f"SHA256:{s.of(43)}",
        "bytecode": f"0x{s.of(64, HEX)}",
        "address": f"0x{s.of(40, HEX)}",
        "pod": f"api-{s.of(9, HEX)}-{s.of(5, LOWER)}",
        "bucket_path": f"s3://data-eu/{s.of(3, HEX)}/{sha1}/part-00001.parquet",
        "cache_path": f"/home/sam/.cache/hub/models--a--b/snapshots/{sha1}/model.onnx",
        "temporary_path": f"/tmp/pytest-of-sam/pytest-{s.of(3, '123')}/test_a0/{s.of(8, LOWER)}",
        "pnpm_path": f"node_modules/.pnpm/react-dom@18.2.0_react@18.2.0/node_modules/x{s.of(3)}",
        "arn": f"arn:aws:iam::{s.of(12, string.digits)}:role/app-deploy-role",
        "asset": f"/assets/index-{s.of(8)}.js",
        "chunk": f"chunk-{s.of(8, UPPER)}.mjs",
        "timestamp": "2026-03-02T10:11:12.123456Z",
        "mac": ":".join(s.of(3, HEX)[:2] for _ in range(6)),
        "thumbnail": f"data:image/png;base64,iVBORw0KGgo{s.b64(90)}",
        "signature": s.b64(180),
        "cid": f"bafybei{s.of(52, 'abcdefghijklmnopqrstuvwxyz234567')}",
        "color": f"#{s.of(6, HEX)}",
        "model": "claude-sonnet-4-5-20250929",
        "branch": f"feature/PROJ-{s.of(4, '123456789')}-rotate-access-keys",
        "hostname": f"ip-10-0-{s.of(3, '123')}-{s.of(3, '123')}.eu-west-1.compute.internal",
    }


#: Where such a value stands: `name`, `NAME`, `VALUE` are put.
_SHOWN = {
    "json": '{"type": "user", "name": "VALUE", "n": 1}',
    "yaml": "item:\n  name: VALUE\n  tag: latest\n",
    "env": "NAME=VALUE\nDEBUG=1\n",
    "log": "2026-03-02 10:11:12 INFO worker name=VALUE took 12 ms\n",
    "prose": "I looked at VALUE and the token refresh works there.\n",
    "code": 'name = "VALUE"  # the last one that passed\n',
    "table": "| name | note |\n|---|---|\n| VALUE | ok |\n",
    "ansi": "\x1b[32m✓\x1b[0m name \x1b[2mVALUE\x1b[0m\n",
    "diff": '-  "name": "VALUE",\n+  "name": null,\n',
}

#: Code and text about secrets that holds none, a line each.
_LINES = r"""
token = request.headers.get("Authorization", "").removeprefix("Bearer ")
if not hmac.compare_digest(signature, expected_signature): raise Forbidden
password = getpass.getpass("Password for %s: " % user)
password_hash = bcrypt.hashpw(password.encode("utf-8"), bcrypt.gensalt(12))
api_key = config["services"]["billing"]["api_key"]
api_key: str = Field(..., description="the key of the service", min_length=20)
self.secret_key = secret_key or os.environ["APP_SECRET_KEY"]
SECRET_KEY = env("DJANGO_SECRET_KEY", default="insecure-development-key")
client_secret=settings.GOOGLE_OAUTH2_CLIENT_SECRET.get_secret_value(),
access_token = await refreshAccessToken(session.refreshToken, { force: true });
const token = jwt.sign({ sub: user.id }, process.env.JWT_SECRET, { expiresIn: "1h" });
const { accessToken, refreshToken } = await auth.exchangeCodeForTokens(code);
export type TokenResponse = { access_token: string; refresh_token?: string };
private readonly tokenService: TokenService,
public string Password { get; set; } = string.Empty;
public string ApiKey { get; set; } = default!;
let mut secret = Zeroizing::new(vec![0u8; 32]);
func (s *Store) GetToken(ctx context.Context, id string) (*oauth2.Token, error) {
token, err := s.client.CreateToken(ctx, &vault.TokenCreateRequest{TTL: "1h"})
fmt.Fprintf(w, "token: %s\n", redact(token))
private static final String PASSWORD_PROPERTY = "javax.net.ssl.keyStorePassword";
@Value("${spring.datasource.password}") private String password;
spring.datasource.password=${DB_PASSWORD}
password: "{{ vault_db_password }}"
password: !vault-encrypted-placeholder
password: <%= ENV["DATABASE_PASSWORD"] %>
password = var.db_password
password = random_password.db.result
secret_arn = aws_secretsmanager_secret.db.arn
value = data.vault_generic_secret.app.data["api_key"]
TOKEN=$(vault kv get -field=token secret/app)
TOKEN=`cat ~/.config/app/token`
export PASSWORD="$(pass show mail/sam)"
curl -H "Authorization: Bearer ${TOKEN}" https://api.example.net/v1/me
curl -u "$USER:$PASSWORD" https://api.example.net/v1/me
curl -H "X-Api-Key: $API_KEY" "$URL"
docker login -u sam --password-stdin < token.txt
docker run -e POSTGRES_PASSWORD -e API_TOKEN app:1
mysql -u root -p main < dump.sql
psql "postgres://$PGUSER:$PGPASSWORD@$PGHOST/main"
DATABASE_URL=postgres://user:password@localhost:5432/app
DATABASE_URL=postgresql://<user>:<password>@<host>/<db>
REDIS_URL=redis://localhost:6379/0
AMQP_URL=amqp://guest:guest@localhost:5672/
git clone https://<token>@git.example.net/a/b.git
git clone git@git.example.net:sam/token-service.git
origin	https://git.example.net/sam/password-manager.git (fetch)
ssh -i ~/.ssh/deploy_key deploy@host.example.net
ssh-keygen -t ed25519 -N "" -f ~/.ssh/id_ed25519
gpg --export-secret-keys --armor sam@example.org
openssl rand -base64 32 > secret.key
openssl enc -aes-256-cbc -pass env:PASS -in a -out b
kubectl create secret generic app --from-file=./password.txt
kubectl get secret app -o jsonpath='{.data.password}' | base64 -d
helm upgrade app ./chart --set existingSecret=app-secrets
aws secretsmanager get-secret-value --secret-id prod/app/db
aws sts get-session-token --duration-seconds 3600
az keyvault secret show --vault-name v --name db-password
gh secret set NPM_TOKEN < token.txt
gh auth status: Logged in to git.example.net as sam (keyring)
- Token: gho_************************************
- Token scopes: 'gist', 'read:org', 'repo', 'workflow'
API_KEY=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
API_KEY=sk-xxxxxxxxxxxxxxxxxxxxxxxx
API_KEY=YOUR_API_KEY
API_KEY=<YOUR_API_KEY>
API_KEY=your_api_key_goes_here
API_KEY=replace-me
API_KEY=...
API_KEY=
API_KEY="${API_KEY:-}"
API_KEY=[your key]
API_KEY=$OTHER_API_KEY
API_KEY=op://vault/item/credential
API_KEY=vault:secret/data/app#api_key
API_KEY=projects/1/secrets/api-key/versions/latest
API_KEY=file:///run/secrets/api_key
TOKEN=dummy-token-for-tests
TOKEN=fake_token_1234
TOKEN=test-token
TOKEN=not-a-real-token
PASSWORD=password123
PASSWORD=hunter2
PASSWORD=changeit
PASSWORD=secret
password: postgres
password = "admin"
password: 'test1234'
"password": "string"
"password": null
"password": true
"token": "<redacted>"
"token": "[FILTERED]"
"token": "***"
"accessToken": {"type": "string", "format": "password"}
"max_tokens": 4096, "token_count": 18234, "tokens_per_second": 41.7
{"input_tokens":12,"cache_creation_input_tokens":18234,"output_tokens":512}
tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
tokens = nltk.word_tokenize(text); tokens[:10]
special_tokens={"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
pad_token_id=151643, eos_token_id=[151645, 151643]
CSRF_COOKIE_SECURE = True; SESSION_COOKIE_HTTPONLY = True
csrfmiddlewaretoken: document.querySelector("[name=csrfmiddlewaretoken]").value
set-cookie: theme=dark; Path=/; Max-Age=31536000
Cookie: theme=dark; lang=en-US; consent=accepted
document.cookie = "seen_banner=true; path=/; max-age=31536000"
AuthenticationError: Incorrect API key provided. You can find your key at the console.
Error: Missing required environment variable: STRIPE_SECRET_KEY
Error: the security token included in the request is expired
fatal: Authentication failed for 'https://git.example.net/sam/a.git/'
remote: Invalid username or password.
Permission denied (publickey,password,keyboard-interactive).
sudo: a password is required
Enter passphrase for key '/home/sam/.ssh/id_ed25519':
sam@host's password:
Password:
The password must contain at least 12 characters, one digit and one symbol.
Passwords do not match; tokens expire after 30 minutes.
Please rotate the key: see docs/how-to-rotate-the-signing-key.md
The secret is stored in the vault under secret/data/prod/app.
The token is sent in the Authorization header as a bearer token.
The key is a composite of tenant_id and created_at.
My key takeaway: the cache key is derived from the user id.
Use environment-specific configuration for the token endpoint.
the access token lifetime is configurable per-application
log in with single-sign-on or with the recovery-code-generator page
What is the difference between a refresh token and an access token?
Das Passwort ist erforderlich. Le mot de passe est obligatoire.
Passwort vergessen? Contraseña incorrecta. パスワードを入力してください。 密码错误，请重试。
primary_key=True, foreign_key="users.id", sort_key="created_at#desc"
partition_key = f"{tenant}#{year}-{month:02d}"
React.Fragment key={`${item.id}-${index}`}
<li key="menu-item-settings-profile-security" role="menuitem">
<input type="password" name="password" placeholder="Your password" required>
<input type="hidden" name="csrf_token" value="{{ csrf_token() }}">
<meta name="csrf-token" content="<%= csrf_token %>">
<PasswordField label="Current password" autoComplete="current-password" />
<key>NSAppTransportSecurity</key><string>disabled</string>
<PackageReference Include="System.IdentityModel.Tokens.Jwt" Version="7.3.1" />
<add key="PasswordMinLength" value="12" />
page.getByLabel("Password").fill(process.env.E2E_PASSWORD)
await page.fill("#password", user.password);
expect(screen.getByLabelText("password")).toBeInTheDocument();
assert response.json()["detail"] == "Invalid token"
assert "secret" not in caplog.text and "password" not in caplog.text
mock.patch("app.auth.get_token", return_value="token")
monkeypatch.setenv("API_TOKEN", "test")
with pytest.raises(InvalidTokenError, match="Signature has expired"):
tests/auth/test_tokens.py::test_expired_token[access-token-3600] PASSED
FAILED tests/test_password_reset.py::test_reset_link_is_single_use - AssertionError
src/auth/password/reset_password_controller.ts:112:14 - error TS2345
grep -rn "api[_-]?key" --include="*.py" src | grep -v test
rg 'password\s*=\s*["\x27][^"\x27]+' -g '!*.lock'
sed -i 's/password=.*/password=CHANGE_ME/' app.properties
re.compile(r"(?i)(api[_-]?key|token|secret)\s*[:=]\s*['\"]?([A-Za-z0-9_\-]{16,})")
ghp_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{82}|xox[baprs]-[A-Za-z0-9-]{10,}
^AKIA[0-9A-Z]{16}$ matches ids of access keys
token_url="https://auth.example.net/oauth2/token", scopes=["read", "write"]
issuer: https://auth.example.net/realms/prod/protocol/openid-connect/token
jwks_uri=https://auth.example.net/.well-known/jwks.json
redirect_uri=http://localhost:3000/api/auth/callback/google
https://example.net/reset-password?step=confirm&lang=en
https://docs.example.net/en/authentication/keeping-your-account-and-data-secure
-rw------- 1 sam sam 411 Mar  2 10:11 /home/sam/.ssh/id_ed25519
/etc/ssl/private/server.key: Permission denied
drwx------ 2 sam sam 4096 Mar  2 10:11 secrets
M  src/keys/keyring_manager.py
create mode 100644 packages/secrets-manager/src/token_rotation_policy.ts
OLDPWD=/tmp/tmp.x7Q2kZ91aB
PWD=/home/sam/work/token-service-2
cd "$(pwd)/build" && make
Active keys: 3, revoked keys: 12, tokens issued: 1842
keyboard: us, keymap: de-latin1-nodeadkeys
monkey = "capuchin-2"; turkey = "bronze-1"; hockey_stats = load("season-2025-26")
key=lambda item: (item.priority, item.created_at)
sorted(rows, key=operator.itemgetter("created_at"), reverse=True)
for key, value in os.environ.items(): print(key)
localStorage.getItem("refreshToken") ?? sessionStorage.getItem("refreshToken")
navigator.credentials.create({ publicKey: options })
allow-credentials: true, access-control-allow-headers: authorization,x-api-key
WWW-Authenticate: Bearer realm="registry", service="registry.example.net"
Authorization: Bearer <token>
Authorization: Basic <base64 of user:password>
Authorization: AWS4-HMAC-SHA256 Credential=<id>/20260302/eu-west-1/s3/aws4_request
X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Expires=3600
Kubernetes secret "app-secrets" created
secret/app-secrets configured
Successfully rotated key deploy-key-2026-03 for project billing-prod
vault write auth/approle/login role_id=$ROLE_ID secret_id=$SECRET_ID
ansible-vault encrypt group_vars/all/vault.yml
passwd: password updated successfully
chpasswd < users.txt
net user administrator /active:no
htpasswd -c /etc/nginx/.htpasswd sam
curl --cert client.pem --key client.key https://mtls.example.net
keytool -importcert -alias root -file ca.pem -storetype PKCS12
!function(e,t){var n=e.token,r=t.secret;return n&&r?n.concat(r):null}(a,b);
e.exports={password:t.string().min(8).required(),token:t.string().optional()}
const r="password"===e.type?a.createElement(o,{type:"password"}):null
"""


def harmless(seed: int) -> Iterator[tuple[str, str]]:
    """Yield kinds and texts that hold no credential and must stay as they are."""
    s = Source(seed)
    for name, value in _values(s).items():
        for shown, text in _SHOWN.items():
            put = text.replace("NAME", name.upper()).replace("name", name).replace("VALUE", value)
            yield f"{name} in {shown}", put
        yield f"{name} in a string", json.dumps(json.dumps({name: value}))
    key = s.of(40, "0123456789ABCDEF")
    for kind, text in (
        ("fetched", f"gpg --keyserver hkps://keys.example.org --recv-keys {key}\n"),
        ("fetched long", f"apt-key adv --keyserver keys.example.org --recv-keys 0x{key}\n"),
        ("used", f"gpg: Signature made 2026-03-02\ngpg:                using RSA key {key}\n"),
        ("imported", f'gpg: key {key[24:]}: public key "Sam" imported\n'),
        ("trusted", f"gpg --trusted-key {key} --verify a.asc\n"),
        ("hash of a key", json.dumps({"key_sha256": s.of(64, HEX), "token_md5": s.of(32, HEX)})),
        ("pinned", f"const pubkey256 = '{s.b64(32)}';\n"),
        (
            "signed by",
            f"[signed-by=/usr/share/keyrings/{key[:16].lower()}.gpg] https://example.org\n",
        ),
    ):
        yield f"public key {kind}", text
    for at, line in enumerate(_LINES.strip().splitlines()):
        yield f"line {at}: {line}", f"{line}\n"
        yield f"json {at}: {line}", json.dumps({"type": "text", "text": f"{line}\n"})
