"""Files in which programs keep credentials, made at run time from a seed."""
# ruff: noqa: E501 - files in one line each

import base64
import json
from collections.abc import Iterator

from tests.credentials import HEX, Sample, Source, armored, body_of, jwt, password

#: Text of a file with what is put: `@p` a password, `@t` a token, `@h` one of hex digits, `@b` Base64,
#: `@u` an id, `@j` a signed token. Each is another, and all are secret.
_FILES = {
    "pypirc": "[distutils]\nindex-servers = pypi\n\n[pypi]\nusername = sam\npassword = @p\n",
    "maven": "<servers>\n<server>\n<id>r</id>\n<username>sam</username>\n<password>@p</password>\n</server>\n</servers>",
    "gradle": "org.gradle.jvmargs=-Xmx2g\nsigning.password=@p\nmavenPassword=@p\nsonatypeToken=@t\n",
    "composer": '{"http-basic": {"repo.example.org": {"username": "sam", "password": "@p"}}, "github-oauth": {"github.com": "@h"}}',
    "nuget": '<packageSourceCredentials><r><add key="Username" value="sam" /><add key="ClearTextPassword" value="@p" /></r></packageSourceCredentials>',
    "rclone": "[remote]\ntype = s3\naccess_key_id = x\nsecret_access_key = @b\n\n[box]\ntype = box\ntoken = {\"access_token\":\"@t\",\"refresh_token\":\"@t\"}\n",
    "s3cfg": "[default]\naccess_key = x\nsecret_key = @t\nhost_base = s3.example.org\n",
    "boto": "[Credentials]\naws_secret_access_key = @b\ngs_secret_access_key = @t\n",
    "aws": "[default]\naws_access_key_id = x\naws_secret_access_key = @b\naws_session_token = @b@b\n",
    "sso": '{"startUrl": "https://x.example.org", "accessToken": "@t", "expiresAt": "2026-01-01T00:00:00Z", "clientSecret": "@j"}',
    "gh": "github.com:\n    user: sam\n    oauth_token: @t\n    git_protocol: https\n",
    "cargo": '[registry]\ntoken = "@t"\n\n[registries.x]\ntoken = "@t"\n',
    "gem": "---\n:rubygems_api_key: @t\n",
    "terraformrc": 'credentials "app.example.org" {\n  token = "@t"\n}\n',
    "tfrc-json": '{"credentials": {"app.example.org": {"token": "@t"}}}',
    "kubeconfig": "users:\n- name: sam\n  user:\n    client-key-data: @b\n    token: @j\n",
    "kubeconfig-password": "users:\n- name: sam\n  user:\n    username: sam\n    password: @p\n",
    "my.cnf": "[client]\nuser = app\npassword = @p\nhost = db1\n",
    "doctl": "access-token: @t\ncontext: default\n",
    "yarnrc": 'npmRegistries:\n  "https://npm.example.org":\n    npmAuthToken: "@t"\n',
    "npmrc-old": "registry=https://npm.example.org/\n_auth=@b\nemail=sam@example.org\nalways-auth=true\n",
    "bunfig": '[install.scopes]\nmyorg = { token = "@t", url = "https://npm.example.org" }\n',
    "wgetrc": "user=sam\npassword=@p\n",
    "curlrc": "user = sam:@p\nheader = \"X-Api-Key: @t\"\n",
    "msmtprc": "account default\nhost smtp.example.org\nuser sam\npassword @p\n",
    "fetchmailrc": "poll mail.example.org proto imap\n  user 'sam' password '@p'\n",
    "mutt": 'set imap_user = "sam"\nset imap_pass = "@p"\nset smtp_pass="@p"\n',
    "wpa": 'network={\n\tssid="home"\n\tkey_mgmt=WPA-PSK\n\tpsk="@p"\n}\n',
    "chap": "# client server secret IP\nsam * @p *\n",
    "ipsec": 'sam : EAP "@p"\n: PSK "@p"\n',
    "sssd": "[domain/x]\nldap_default_bind_dn = cn=a\nldap_default_authtok = @p\n",
    "wireguard": "[Interface]\nPrivateKey = @b\nAddress = 10.0.0.2/32\n\n[Peer]\nPublicKey = x\nPresharedKey = @b\n",
    "openvpn-login": "auth-user-pass\n<auth-user-pass>\nsam\n@p\n</auth-user-pass>\n",
    "service-values": "postgresql:\n  auth:\n    postgresPassword: @p\n    existingSecret: \"\"\n",
    "mcp": '{"mcpServers": {"x": {"command": "npx", "args": ["-y", "x", "--api-key=@t"], "env": {"X_TOKEN": "@t"}}}}',
    "mcp-http": '{"mcpServers": {"x": {"type": "http", "url": "https://x.example.org/mcp", "headers": {"Authorization": "Bearer @t"}}}}',
    "postman": '{"values": [{"key": "api_token", "value": "@t", "type": "secret", "enabled": true}]}',
    "har": '{"request": {"headers": [{"name": "Authorization", "value": "Bearer @j"}, {"name": "Cookie", "value": "sid=@t"}]}}',
    "har-cookie": '{"cookies": [{"name": "session", "value": "@t", "httpOnly": true}]}',
    "rest-client": "### login\nPOST https://x.example.org/token\nContent-Type: application/x-www-form-urlencoded\n\ngrant_type=client_credentials&client_id=x&client_secret=@t\n",
    "oauth-answer": '{"access_token":"@t","token_type":"Bearer","expires_in":3599,"refresh_token":"@t","id_token":"@j"}',
    "device-flow": '{\n  "device_code": "@h",\n  "user_code": "x",\n  "interval": 5\n}',
    "appsettings": '{"ConnectionStrings": {"Default": "Server=db;Database=a;User Id=sa;Password=@p;"}, "Jwt": {"Key": "@t", "Issuer": "x"}}',
    "application-yml": "spring:\n  datasource:\n    url: jdbc:postgresql://db/a\n    username: app\n    password: @p\n  security:\n    oauth2:\n      client:\n        client-secret: @t\n",
    "django": "DATABASES = {'default': {'ENGINE': 'x', 'USER': 'app', 'PASSWORD': '@p'}}\nSECRET_KEY = '@t'\n",
    "wp-config": "define( 'DB_PASSWORD', '@p' );\ndefine( 'AUTH_KEY', '@t@t' );\n",
    "laravel": "APP_KEY=base64:@b\nDB_PASSWORD=@p\nMAIL_PASSWORD=@p\nPUSHER_APP_SECRET=@h\n",
    "rails": "production:\n  secret_key_base: @h@h\n",
    "phoenix": 'config :app, AppWeb.Endpoint,\n  secret_key_base: "@t@t",\n  live_view: [signing_salt: "@t"]\n',
    "actions-log": "  env:\n    DEPLOY_TOKEN: @t\n    NODE_ENV: test\nRun ./deploy.sh\n",
    "circleci": "environment:\n  AWS_SECRET_ACCESS_KEY: @b\n  SLACK_SIGNING_SECRET: @h\n",
    "inspect": '[{"Config": {"Env": ["PATH=/usr/bin", "POSTGRES_PASSWORD=@p", "SESSION_SECRET=@t"]}}]',
    "ps": "sam  4242  0.0  0.1  app serve --db-password @p --token=@t --port 80\n",
    "unit": "[Service]\nEnvironment=API_KEY=@t DB_PASS=@p\nExecStart=/bin/app\n",
    "crontab": "API_TOKEN=@t\n0 3 * * * curl -fsS -H 'Authorization: Bearer @t' https://x.example.org/\n",
    "fstab": "//srv/a /mnt cifs username=sam,password=@p,iocharset=utf8 0 0\n",
    "smb": "username=sam\npassword=@p\ndomain=WORK\n",
    "ansible-hosts": "db1 ansible_host=10.0.0.5 ansible_user=sam ansible_ssh_pass=@p ansible_become_password=@p\n",
    "vault-output": "Key                Value\n---                -----\ntoken              @t\ntoken_accessor     x\n",
    "vault-init": '{"unseal_keys_b64": ["@b", "@b"], "root_token": "@t"}',
    "iam": '{"AccessKey": {"UserName": "sam", "Status": "Active", "SecretAccessKey": "@b"}}',
    "sts": '{"Credentials": {"AccessKeyId": "x", "SecretAccessKey": "@b", "SessionToken": "@b@b"}}',
    "principal": '{\n  "appId": "x",\n  "displayName": "x",\n  "password": "@t",\n  "tenant": "x"\n}',
    "storage-keys": '[{"keyName": "key1", "permissions": "FULL", "value": "@b@b"}]',
    "supabase": "         API URL: http://127.0.0.1:54321\n      JWT secret: @t\n        anon key: @j\nservice_role key: @j\n",
    "dotenv-vault": 'DOTENV_KEY="dotenv://:key_@h@dotenv.example.org/vault/.env?environment=ci"\n',
    "sentry": "dsn: https://@h@o1.ingest.example.org/42\n",
    "firebase": "firebaseConfig = { apiKey: \"@t\", authDomain: \"x.example.org\", messagingSenderId: \"1\" };\n",
    "shadow": "sam:$6" + "$@s$@s@s@s@s:19700:0:99999:7:::\n",
    "table-sql": " id | email | api_token\n----+-------+-----------\n  1 | s@x.org | @t\n(1 row)\n",
    "mysql-table": "+----+------------------+\n| id | password         |\n+----+------------------+\n|  1 | @p |\n+----+------------------+\n",
    "rows-json": '[{"id": 1, "email": "s@example.org", "reset_token": "@t", "otp_secret": "@B"}]',
    "totp": "otpauth" + "://totp/App:sam?secret=@B&issuer=App\n",
    "irc": "[server]\nnick = sam\nsasl_password = @p\n",
    "redis.conf": "port 6379\nrequirepass @p\nuser app on >@p ~* +@all\n",
    "mongod": "security:\n  keyFile: /etc/key\nstorage: {}\nreplication:\n  # password: @p\n",
    "rabbit": "default_user = app\ndefault_pass = @p\n",
    "grafana": "[security]\nadmin_user = admin\nadmin_password = @p\nsecret_key = @t\n",
    "consul": '{"acl": {"tokens": {"initial_management": "@u", "agent": "@u"}}, "encrypt": "@b"}',
    "nomad": "export NOMAD_TOKEN=@u\nexport CONSUL_HTTP_TOKEN=@u\n",
    "borg": "export BORG_PASSPHRASE='@p'\nexport BORG_REPO=ssh://b.example.org/./r\n",
    "ldif": "dn: cn=sam\nuserPassword: @p\nuserPassword:: @b\n",
    "http-dump": "POST /oauth/token HTTP/1.1\r\nHost: x.example.org\r\nAuthorization: Basic @b\r\nX-Api-Key: @t\r\n\r\n{\"password\":\"@p\"}\r\n",
    "curl-verbose": "* Server auth using Basic with user 'sam'\n> Authorization: Bearer @t\n> Cookie: _session_id=@h; theme=x\n< set-cookie: csrf=@t; Path=/\n",
    "jupyter": "[I 10:11:12 App] http://localhost:8888/lab?token=@h\n",
    "argocd": "argocd admin initial-password -n argocd\n@p\n",
    "random": "$ openssl rand -hex 32 > key; cat secret.key\n@h\n",
    "generated": "Generated a new API key:\n\n    @t\n\nStore it safely.\n",
    "kubeadm": "kubeadm join 10.0.0.1:6443 --token @k --discovery-token-ca-cert-hash sha256:x\n",
}  # fmt: skip

_MADE = {
    "p": password,
    "t": lambda s: s.of(40),
    "h": lambda s: s.of(40, HEX),
    "b": lambda s: s.b64(33),
    "u": Source.uuid,
    "j": jwt,
    "s": lambda s: s.of(20),
    "B": lambda s: s.of(32, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
    "k": lambda s: f"{s.of(6, 'abcdef234567')}.{s.of(16, 'abcdef234567')}",
}


def _filled(s: Source, text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text with a secret for each mark, and the secrets."""
    parts, secrets = [], []
    rest = text
    while rest:
        before, mark, rest = rest.partition("@")
        parts.append(before)
        if not mark:
            break
        if rest[:1] in _MADE and not rest[1:2].islower():
            secret = _MADE[rest[0]](s)
            parts.append(secret)
            secrets.append(secret)
            rest = rest[1:]
        else:
            parts.append(mark)
    return "".join(parts), tuple(secrets)


def kept(seed: int) -> Iterator[Sample]:
    """Yield files with secrets, as they are and as agents show and write them."""
    s = Source(seed)
    for kind, template in _FILES.items():
        text, secrets = _filled(s, template)
        assert secrets, kind
        yield Sample(kind, "file", text, secrets)
        numbered = "".join(f"{at:6}\t{one}\n" for at, one in enumerate(text.splitlines(), 1))
        yield Sample(kind, "numbered", numbered, secrets)
        yield Sample(kind, "json", json.dumps({"file": kind, "content": text}), secrets)
        added = "".join(f"+{one}\n" for one in text.splitlines())
        yield Sample(kind, "added", f"@@ -0,0 +1,9 @@\n{added}", secrets)
        yield Sample(kind, "twice", json.dumps({"x": json.dumps({"y": text})}), secrets)
    for name in ("RSA PRIVATE" + " KEY", "PRIVATE" + " KEY", "OPENSSH PRIVATE" + " KEY"):
        block = armored(s, name)
        whole = base64.b64encode(block.encode()).decode()
        yield Sample(name, "base64", f"  tls.key: {whole}\n", (whole,))
        yield Sample(name, "environment", f'KEY="{block}"\n', body_of(block))
        account = json.dumps({"type": "service_account", "private_key": block})
        whole = base64.b64encode(account.encode()).decode()
        yield Sample(name, "account", f"GOOGLE_CREDENTIALS={whole}\n", (whole,))
