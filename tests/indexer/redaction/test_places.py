"""Each rule for a place that tells a secret: one that it finds, and one like it that stays."""

import re
import string
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from funes_ls.indexer.redaction import redactor as module
from funes_ls.indexer.redaction.redactor import Redactor, own_rules
from tests.credentials import HEX, UPPER, Source, password

#: Characters of addresses of coins, without those that look like one another.
_COINS = "".join(char for char in string.ascii_letters + string.digits if char not in "0OIl")
_BASE32 = f"{string.ascii_uppercase}234567"


class Place(NamedTuple):
    """A text with `VALUE`, how one is made, and texts of the same kind that hold none."""

    text: str
    harmless: tuple[str, ...]
    made: Callable[[Source], str] = password


def _pairs(s: Source, count: int = 20) -> str:
    return ":".join(s.of(3, HEX)[:2] for _ in range(count))


def _codes(s: Source) -> str:
    return "\n".join(f"{s.of(5, HEX)}-{s.of(5, HEX)}" for _ in range(6))


PLACES = {
    "funes.counted": Place(
        "K 8\npassword\nV 20\nVALUE\nEND\n", ("password V 20 changeme\n", "K 8\nuser\nV 3\nsam\n")
    ),
    "funes.package-login": Place(
        "bundle config gems.example.net sam:VALUE\n",
        ("bundle config set --local path vendor/bundle\n", "BUNDLE_PATH: vendor/bundle\n"),
    ),
    "funes.sent": Place(
        'expect "assword:"\nsend "VALUE\\r"\n',
        ('expect "assword:"\nsend "$password\\r"\n', 'the password form\nsend("changeme")\n'),
    ),
    "funes.sent-line": Place(
        'expect "*assword:*" { send -- "VALUE\\r" }\n',
        ('expect "*assword:*" { send -- "$pass\\r" }\n', "assword: send a mail to reset it\n"),
    ),
    "funes.form-field": Place(
        '--p\r\nContent-Disposition: form-data; name="password"\r\n\r\nVALUE\r\n--p--\r\n',
        (
            '--p\r\nContent-Disposition: form-data; name="password"\r\n\r\nchangeme\r\n--p--\r\n',
            '<input name="token">\n\n<button>Continue</button>\n',
        ),
    ),
    "funes.terraform": Place(
        '{"type": "random_password", "instances": [{"attributes": {"length": 20, '
        '"result": "VALUE"',
        ('{"type": "random_password", "result": ""', '"sensitive": true, "value": "changeme"'),
    ),
    "funes.terraform-output": Place(
        '{"db": {"value": "VALUE", "type": "string", "sensitive": true}}',
        (
            '{"db": {"value": "db1.internal", "type": "string", "sensitive": false}}',
            '{"db": {"value": "<redacted>", "type": "string", "sensitive": true}}',
        ),
    ),
    "funes.variable": Place(
        'variable "db_password" {\n  type    = string\n  default = "VALUE"\n}\n',
        (
            'variable "db_password" {\n  type    = string\n  default = "changeme"\n}\n',
            'variable "key_name" {\n  default = "deploy"\n}\n',
        ),
    ),
    "funes.positional": Place(
        "poetry config http-basic.private sam VALUE\n",
        (
            "poetry config virtualenvs.in-project true\n",
            "net user administrator /active:yes\n",
            "openssl enc -aes-256-cbc -k $KEY -in a -out b\n",
            "enable secret management in the settings\n",
        ),
    ),
    "funes.snmp": Place(
        "snmpwalk -v3 -u sam -l authPriv -a SHA -A VALUE 10.0.0.1\n",
        ("snmpwalk -v2c -c public 10.0.0.1\n", "snmpget -v3 -A $AUTH -X $PRIV host sysName\n"),
    ),
    "funes.last-word": Place(
        "htpasswd -cb .htpasswd sam VALUE\n",
        ("htpasswd -c .htpasswd sam\n", 'htpasswd -nb sam "$PASSWORD"\n'),
    ),
    "funes.dialogue": Place(
        'a001 LOGIN sam "VALUE"\r\n', ("a001 OK LOGIN completed\r\n", "* LOGIN disabled here\n")
    ),
    "funes.mail-login": Place(
        "C: AUTH PLAIN VALUE\n", ("250-AUTH PLAIN LOGIN\n",), lambda s: s.b64(30)
    ),
    "funes.client-login": Place(
        "curl -sSu sam:VALUE https://api.example.net/\n",
        ("curl -u sam:$TOKEN https://api.example.net/\n", "http -a sam: GET example.net\n"),
    ),
    "funes.client-key": Place(
        "curl -u VALUE: https://api.example.net/v1/charges\n",
        ("curl -u $API_KEY: https://api.example.net/\n", "curl -u administrator-of-all: x\n"),
        lambda s: s.of(32),
    ),
    "funes.unseal": Place(
        "Unseal Key 1: VALUE\n",
        ("Unseal Progress    1/3\n", f"unseal {'the ' * 12}\n"),
        lambda s: s.b64(33),
    ),
    "funes.accessor": Place(
        "secret_id             VALUE\nsecret_id_accessor    x\n",
        ("secret_id_num_uses    0\n",),
        Source.uuid,
    ),
    "funes.asked": Place(
        "AWS Secret Access Key [None]: VALUE\n",
        ("AWS Secret Access Key [****************]: \n", "Password [hidden]: changeme\n"),
        lambda s: s.b64(30),
    ),
    "funes.key-pair": Place(
        "id,key\n" + "AK" + "IA" + "Q2W3E4R5T6Y7U2I3" + ",VALUE\n",
        ("AK" + "IA" + "IOSFODNN7" + "EXAMPLE, then the secret\n",),
        lambda s: s.b64(30),
    ),
    "funes.record": Place(
        '{"Name": "app", "SecretString": "VALUE"}',
        ('{"Name": "app", "SecretString": "$VALUE"}', '{"Type": "SecureString", "Value": "***"}'),
    ),
    "funes.cookie-record": Place(
        '[{"name": "sessionid", "value": "VALUE", "domain": ".example.net"}]',
        ('[{"name": "session_name", "value": "the-session-of-today"}]',),
        lambda s: s.of(32),
    ),
    "funes.element-value": Place(
        "<key>apiToken</key>\n<string>VALUE</string>\n",
        ("<key>passwordLength</key>\n<string>sixteen</string>\n",),
    ),
    "funes.element-hidden": Place(
        "<server><password>{VALUE}</password></server>\n",
        ("<server><password>${env.PASSWORD}</password></server>\n",),
        lambda s: s.b64(32),
    ),
    "funes.login-arguments": Place(
        'new Credentials("realm", "sam", "host", "VALUE")',
        ('Credentials("a", "b", "c", "password")',),
    ),
    "funes.directory-hash": Place(
        "userPassword: {SSHA}VALUE\n",
        ("userPassword: {SSHA}\n", "{SHA} and {SSHA} are supported\n"),
        lambda s: s.b64(24),
    ),
    "funes.domain-hash": Place(
        "sam:1001:VALUE:::\n",
        ("user:uid:lm:nt:::\n",),
        lambda s: f"{s.of(32, HEX)}:{s.of(32, HEX)}",
    ),
    "funes.vault-file": Place(
        "$ANSIBLE_VAULT;1.1;AES256\nVALUE\n",
        ("$ANSIBLE_VAULT;1.1;AES256 is its first line\n",),
        lambda s: s.of(80, HEX),
    ),
    "funes.link": Place(
        "https://app.example.net/reset-password/VALUE\n",
        (
            "https://app.example.net/reset-password/how-to-reset-the-password\n",
            "https://example.net/login/with-single-sign-on-for-teams\n",
        ),
        lambda s: s.of(40),
    ),
    "funes.told": Place(
        "The initial password for the account is: VALUE\n",
        (
            "The password of the user was changed: successfully\n",
            "A password has three parts: letters\n",
        ),
    ),
    "funes.printed": Place(
        "$ gh auth token\nVALUE\n",
        ("$ gh auth token\nno oauth token found\n", "$ echo $API_TOKEN\n\n$ ls\n"),
        lambda s: s.of(40),
    ),
    "funes.codes": Place(
        "Recovery codes:\nVALUE\n",
        (
            "Recovery codes: sign-in two-factor set-up\n",
            "Backup codes are kept in a write-only store.\n",
        ),
        _codes,
    ),
    "funes.seed": Place(
        "oathtool --totp -b VALUE\n",
        ("oathtool --totp -b $SEED\n",),
        lambda s: "".join(s.choice(_BASE32) for _ in range(32)),
    ),
    "funes.numbers": Place(
        "privateExponent:\n    VALUE\npublicExponent: 65537\n",
        ("prime1: yes\ncoefficient: 0.5\n",),
        _pairs,
    ),
    "funes.bytes": Place(
        "const secretKey = Uint8Array.from([VALUE]);\n",
        (
            f"const secretKey = [{', '.join(['0'] * 32)}];\n",
            f"private_key_sizes = [{', '.join(str(n * 512) for n in range(1, 40))}]\n",
        ),
        lambda s: ", ".join(str(s.randrange(256)) for _ in range(64)),
    ),
    "funes.wallet-key": Place(
        "WIF: VALUE\n", ("WIF: see the wallet\n",), lambda s: "K" + s.of(51, _COINS)
    ),
    "funes.statement-values": Place(
        "INSERT INTO users (name, password) values ('sam', 'VALUE');\n",
        ("INSERT INTO users (name, password) values ('sam', 'password');\n",),
    ),
    "funes.cells": Place(
        "| user | password |\n|---|---|\n| sam | VALUE |\n",
        ("| user | password |\n|---|---|\n| string | required |\n",),
    ),
    "funes.fields": Place(
        "name,password\nsam,VALUE\n", ("name,password\nsam,required\n", "token,kind\nword,noun\n")
    ),
    "funes.before-name": Place(
        "Please use VALUE as the password.\n",
        ("Use environment-variables as the token.\n", "set PASSWORD_STORE_DIR for the password\n"),
    ),
    "funes.told-login": Place(
        "You can log in as sam with VALUE now.\n",
        ("You can log in with single-sign-on now.\n", "change the password to something\n"),
    ),
    "funes.bracketed": Place(
        "the admin password (VALUE) works\n", ("the admin password (optional-one) works\n",)
    ),
    "funes.salt": Place(
        "define('NONCE_SALT', 'VALUE');\n",
        ("define('NONCE_SALT', 'put your unique phrase here, as long as you can do it');\n",),
        lambda s: s.of(64, string.ascii_letters + string.digits + "!@#%^&*()[]{}~|:,.?/-"),
    ),
    "funes.cluster": Place(
        "kubeadm join 10.0.0.1:6443 --token VALUE\n",
        ("kubeadm join 10.0.0.1:6443 --token $TOKEN\n",),
        lambda s: (
            f"{s.of(6, HEX + 'klmn')}.{s.of(16, string.ascii_lowercase + string.digits)}"
        ).lower(),
    ),
    "funes.wallet": Place(
        "account VALUE\n", ("account xprv\n",), lambda s: "xp" + "rv" + s.of(107, _COINS)
    ),
    "funes.nodes": Place(
        "join with VALUE\n",
        ("K10 is a mountain\n",),
        lambda s: "K1" + f"0{s.of(64, HEX)}::server:{s.of(32, HEX)}",
    ),
    "funes.login-token": Place(
        "vault login VALUE\n",
        ("vault login -method=userpass username=sam\n", "fly auth login --interactive-please\n"),
        lambda s: s.of(28),
    ),
    "funes.radio": Place("iwconfig wlan0 key s:VALUE\n", ("iwconfig wlan0 key $WIRELESS\n",)),
    "funes.slashed": Place(
        "sqlplus app/VALUE@db1\n", ("sqlplus app/$PASS@db1\n", "sqlplus / as sysdba\n")
    ),
    "funes.typed": Place(
        "page.get_by_label('Password').fill('VALUE')\n",
        ("page.get_by_label('Password').fill('password')\n", "fill('#token').type('some text')\n"),
    ),
    "funes.signing": Place(
        "jwt.sign(payload, 'VALUE')\n",
        ("jwt.verify(token, 'secret')\n", "jwt.decode(token, 'publicKeyOfIssuer')\n"),
    ),
    "funes.commented": Place(
        'new Client("VALUE"); // api key\n',
        ('load("authentication-of-users"); // token\n',),
        lambda s: s.of(32),
    ),
    "funes.page-field": Place(
        '<input type="password" name="pw" value="VALUE">\n',
        ('<input type="password" name="pw" value="Password">\n', '<meta name="csrf-param">\n'),
    ),
    "funes.here-text": Place(
        "passwd --stdin sam <<< VALUE\n", ('passwd --stdin sam <<< "$PASSWORD"\n',)
    ),
    "funes.session-cookie": Place(
        "JSESSIONID=VALUE; Path=/\n",
        ("JSESSIONID=<redacted>; Path=/\n",),
        lambda s: s.of(32, UPPER),
    ),
    "funes.shown": Place(
        "this is my key VALUE\n",
        ("this is my key takeaway\n", "the new token implementation works\n"),
        lambda s: s.of(32),
    ),
    "funes.by-host": Place(
        '{"github-oauth": {"git.example.net": "VALUE"}}',
        ('{"tokens": {"length": "twelve-characters"}}',),
        lambda s: s.of(40, HEX),
    ),
    "funes.user-line": Place(
        "url = https://example.net\nuser = sam:VALUE\n",
        ("user = models:UserOfToday\n", "user on duty since 2026-03-02\n", "a * b * c\n"),
    ),
    "funes.peer": Place(
        "sam * VALUE *\n", ("f(a) * abs(cinv).sum(-2).max(-1) * 2\n", "- a * b1 * *\n")
    ),
    "funes.tunnel": Place('sam : EAP "VALUE"\n', (': PSK "password"\n',)),
    "funes.coded": Place(
        '{"device_code": "VALUE", "interval": 5}',
        ('{"encryption": "aes-256-gcm-with-associated-data"}',),
        lambda s: s.of(40),
    ),
    "funes.shares": Place(
        '{"unseal_keys_b64": ["VALUE"]}', ('{"unseal_keys_b64": []}',), lambda s: s.b64(33)
    ),
    "funes.columns": Place(
        " id | token\n----+-------\n  1 | VALUE\n",
        (" id | token\n----+-------\n  1 | required\n", "key | kind\n--- | ---\na | string\n"),
        lambda s: s.of(32),
    ),
    "funes.below": Place(
        "Your new API key:\n\n    VALUE\n\nKeep it.\n",
        ("Your new API key:\n\n    see-the-dashboard-for-it\n",),
        lambda s: s.of(32),
    ),
}  # fmt: skip


def ids(file: str) -> list[str]:
    """Return the ids of rules of a file."""
    text = (module._RULES / file).read_text(encoding="utf-8")
    return re.findall(r"(?m)^    id: (\S+)$", text)


def test_every_rule_of_a_place_is_tried_here() -> None:
    assert sorted(PLACES) == sorted(ids("places.yml"))


@pytest.mark.parametrize("seed", [1, 20261204])
@pytest.mark.parametrize("rule", PLACES)
def test_a_place_is_known(redactor: Redactor, rule: str, seed: int) -> None:
    place = PLACES[rule]
    value = place.made(Source(seed))
    text = place.text.replace("VALUE", value)
    assert rule in {found for *_, found in redactor._scanned(text)}
    clean = redactor.text(text).text
    assert not any(line in clean for line in value.splitlines())
    head, _, tail = place.text.partition("VALUE")
    assert clean.startswith(head[:6]) and clean.endswith(tail[-4:])


@pytest.mark.parametrize("rule", PLACES)
def test_a_place_that_holds_none_stays(redactor: Redactor, rule: str) -> None:
    for text in PLACES[rule].harmless:
        assert redactor.text(text).text is text


#: Rules whose finds are judged as tokens: they are what their form says, or come with one.
_BY_FORM = {
    "funes.accessor", "funes.element-hidden", "funes.directory-hash", "funes.domain-hash",
    "funes.vault-file", "funes.seed", "funes.numbers", "funes.wallet-key", "funes.cluster",
    "funes.wallet", "funes.nodes",
}  # fmt: skip


def test_every_rule_is_judged_in_one_way() -> None:
    """What is named here is a rule; each of a place has a judgement, and only one."""
    ways = (
        module._BY_KEY, module._BY_CHANCE, module._PASSWORDS, module._NAMED, module._PHRASES,
        set(module._LISTS), module._ROWS, module._COOKIES, {"funes.near", "funes.words"},
    )  # fmt: skip
    named = [rule for way in ways for rule in way]
    assert len(named) == len(set(named))
    assert set(named) <= set(own_rules()) and set(named) >= module._TOLD
    assert not _BY_FORM & set(named)
    assert set(ids("places.yml")) <= set(named) | _BY_FORM
    assert set(ids("families.yml")) <= set(named) | {"funes.password-hash"}


def test_no_two_rules_share_an_id() -> None:
    assert len(own_rules()) == len(set(own_rules()))
    assert {path.name for path in module._rule_files()} == {
        path.name for path in module._RULES.glob("*.yml")
    }


def test_rules_of_every_file_count_for_the_stamp(monkeypatch: pytest.MonkeyPatch) -> None:
    files = module._rule_files()
    stamps = {module.current_stamp.__wrapped__()}
    for left_out in files:
        kept: list[Path] = [path for path in files if path != left_out]
        monkeypatch.setattr(module, "_rule_files", lambda kept=kept: kept)
        stamps.add(module.current_stamp.__wrapped__())
    assert len(stamps) == len(files) + 1 >= 4


#: Words for a password, as they are written and as who has no such keys writes them.
_WORDS = (
    "password", "passwort", "kennwort", "contraseña", "contrasena", "senha", "parola",
    "mot de passe", "wachtwoord", "hasło", "haslo", "lösenord", "losenord", "adgangskode",
    "passord", "salasana", "heslo", "jelszó", "jelszo", "şifre", "sifre", "пароль", "密码",
    "密碼", "口令", "パスワード", "暗証番号", "비밀번호", "암호", "ŞİFRE", "parolă", "mật khẩu",
    "κωδικός", "סיסמה", "كلمة المرور", "पासवर्ड", "รหัสผ่าน",
)  # fmt: skip


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("case", [str, str.upper, str.title, str.casefold])
@pytest.mark.parametrize("word", _WORDS)
def test_words_for_a_password_are_known_in_any_case_and_form(
    redactor: Redactor, word: str, case: Callable[[str], str], form: str
) -> None:
    secret = password(Source(7))
    name = unicodedata.normalize(form, case(word))  # type: ignore[arg-type]
    for text in (f"{name}: {secret}\n", f"{name}={secret}\n", f'"{name}": "{secret}"\n'):
        clean = redactor.text(text).text
        assert clean == text.replace(secret, "<redacted>"), text


def test_ids_of_clouds_are_not_taken_for_their_secret(redactor: Redactor) -> None:
    text = f"see {'AK' + 'IA'}{Source(3).of(16, UPPER)[:3]} and so on\n"
    assert redactor.text(text).text is text
