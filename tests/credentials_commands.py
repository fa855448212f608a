"""Commands, files, code and dialogues in which a password or a token stands, a line each.

As `tests/credentials.py`, made at run time from a seed.
"""

from collections.abc import Callable, Iterator

from tests.credentials import Sample, Source, password

#: Commands, files and dialogues: each line one, `VALUE` a password or `TOKEN` made of letters.
_COMMANDS = r"""
git clone https://sam:VALUE@git.example.org/a/b.git
git clone https://TOKEN@git.example.org/a/b.git
git remote add up https://oauth2:TOKEN@git.example.org/a.git
git -c http.extraheader="PRIVATE-TOKEN: TOKEN" fetch
https://sam:VALUE@git.example.org
aws configure set aws_secret_access_key TOKEN
npm config set //registry.example.org/:_authToken TOKEN
//registry.example.org/:_authToken=TOKEN
heroku config:set API_SECRET=TOKEN -a app
fly secrets set DB_PASSWORD=VALUE
vault kv put secret/app password=VALUE
vault login TOKEN
az keyvault secret set --vault-name v --name db-password --value VALUE
aws ssm put-parameter --name /app/db/password --type SecureString --value VALUE
aws secretsmanager create-secret --name a --secret-string '{"password":"VALUE"}'
gh api -H "Authorization: token TOKEN" /user
op item create --category=login password=VALUE
doctl auth init -t TOKEN
docker login -u sam -p VALUE registry.example.org
docker login --username sam --password VALUE registry.example.org
kubectl create secret docker-registry r --docker-username=sam --docker-password=VALUE
kubectl config set-credentials sam --token=TOKEN
kubectl --token TOKEN get pods
helm repo add r https://charts.example.org --username sam --password VALUE
pip install --index-url https://sam:VALUE@pypi.example.org/simple a
twine upload -u sam -p VALUE dist/*
psql "host=db1 user=app password=VALUE dbname=main"
psql postgresql://app:VALUE@db1/main -c 'select 1'
mysql -u app -pVALUE main < dump.sql
mysql --user=app --password=VALUE main
mongosh "mongodb://app:VALUE@m1,m2/admin?replicaSet=r"
mongorestore -u app -p VALUE --db main dump/
redis-cli -u redis://:VALUE@cache:6379/1 ping
redis-cli -h cache --pass VALUE ping
openssl pkcs12 -in a.p12 -passin pass:VALUE -out a.pem
openssl rsa -in a.key -passin pass:VALUE
gpg --batch --passphrase VALUE -d a.gpg
gpg --batch --passphrase 'VALUE' --symmetric a
ssh-keygen -t ed25519 -N 'VALUE' -f key
zip -P VALUE a.zip a
7z a -pVALUE a.7z dir
unzip -P VALUE a.zip
unrar x -pVALUE a.rar
ldapsearch -x -D cn=admin,dc=x -w VALUE -b dc=x
curl --user sam:VALUE https://x.example.org
curl -usam:VALUE https://x.example.org
curl --oauth2-bearer TOKEN https://x.example.org
curl -d '{"user":"sam","password":"VALUE"}' https://x.example.org
curl -d "grant_type=password&username=sam&password=VALUE" https://x.example.org
curl -F password=VALUE https://x.example.org
curl --data-urlencode "client_secret=TOKEN" https://x.example.org
curl -b "session=TOKEN; theme=x" https://x.example.org
curl -H "Cookie: connect.sid=TOKEN" https://x.example.org
curl -H 'apikey: TOKEN' https://x.example.org
curl -H "api-key: TOKEN" https://x.example.org
curl -H "X-API-KEY:TOKEN" https://x.example.org
curl -H "Authorization: TOKEN" https://x.example.org
curl -H "Authorization: Token token=TOKEN" https://x.example.org
curl -H "Authorization: ApiKey TOKEN" https://x.example.org
curl -H "X-Vault-Token: TOKEN" https://x.example.org
curl -H "Private-Token: TOKEN" https://x.example.org
curl "https://x.example.org/v1?key=TOKEN&q=1"
wscat -c "wss://x.example.org/socket?token=TOKEN"
http POST x.example.org Authorization:"Bearer TOKEN"
http -a sam:VALUE x.example.org
wget --user=sam --password=VALUE https://x.example.org
wget --header="Authorization: Bearer TOKEN" https://x.example.org
sshpass -pVALUE ssh sam@h
sshpass -p 'VALUE' scp a sam@h:
net use Z: \\srv\share VALUE /user:sam
cmdkey /add:srv /user:sam /pass:VALUE
schtasks /create /tn a /tr b /ru sam /rp VALUE
wpa_passphrase home VALUE
iwconfig wlan0 essid home key s:VALUE
nmcli dev wifi connect home password VALUE
ansible-playbook site.yml -e "db_password=VALUE"
ansible-playbook site.yml -e ansible_become_pass=VALUE
svn checkout --username sam --password VALUE https://svn.example.org/a
mount -t cifs //srv/a /mnt -o username=sam,password=VALUE
//srv/a /mnt cifs username=sam,password=VALUE,uid=1000 0 0
rclone config create r sftp host h user sam pass VALUE
lftp -u sam,VALUE ftp.example.org
ncftpput -u sam -p VALUE ftp.example.org / a
snowsql -a acc -u sam --authenticator snowflake PWD=VALUE
sqlplus app/VALUE@//db:1521/x
sqlcmd -S db -U sa -P VALUE -Q "select 1"
bcp main out a -S db -U sa -P VALUE
Server=tcp:db,1433;User ID=sa;Password=VALUE;Encrypt=True;
Data Source=db;Initial Catalog=a;uid=sa;pwd=VALUE;
Driver={PostgreSQL};Server=db;Uid=app;Pwd=VALUE;
amqp://app:VALUE@mq:5672/v
smtp://sam%40example.org:VALUE@smtp.example.org:587
ftp://sam:VALUE@ftp.example.org/a
clickhouse-client -h db -u app --password VALUE
cqlsh -u app -p VALUE db
influx auth --token TOKEN
influx -username sam -password 'VALUE'
jdbc:mysql://db/a?user=app&password=VALUE
jdbc:sqlserver://db;user=sa;password=VALUE;
jdbc:oracle:thin:app/VALUE@db:1521:x
CREATE USER app WITH ENCRYPTED PASSWORD 'VALUE';
CREATE USER 'app'@'%' IDENTIFIED BY 'VALUE';
ALTER USER sa WITH PASSWORD = 'VALUE';
SET PASSWORD FOR 'app'@'h' = PASSWORD('VALUE');
GRANT ALL ON a.* TO 'app'@'%' IDENTIFIED BY 'VALUE';
CREATE SECRET s (TYPE S3, SECRET 'TOKEN');
COPY a FROM 's3://b' CREDENTIALS 'aws_access_key_id=x;aws_secret_access_key=TOKEN';
db.createUser({user: "app", pwd: "VALUE", roles: []})
client.login('sam', 'VALUE')
session.auth = ('sam', 'VALUE')
auth=HTTPBasicAuth('sam', 'VALUE')
server.login("sam@example.org", "VALUE")
paramiko.connect(host, username="sam", password="VALUE")
driver.find_element(By.ID, "password").send_keys("VALUE")
await page.fill('#password', 'VALUE')
await page.getByLabel('Password').fill('VALUE');
cy.get('input[name=password]').type('VALUE')
headers = {"Authorization": "Bearer TOKEN", "Accept": "*/*"}
headers: { 'x-api-key': 'TOKEN' }
req.Header.Set("Authorization", "Bearer TOKEN")
request.setHeader("X-Token", "TOKEN");
axios.defaults.headers.common['Authorization'] = 'TOKEN';
openai.api_key = "TOKEN"
Stripe.setApiKey("TOKEN");
new Client({ auth: "TOKEN" })
const client = new Client("TOKEN"); // api key
app.secret_key = b'VALUE'
JWT.encode(payload, 'VALUE', 'HS256') # secret
jwt.sign(payload, "VALUE")
password: VALUE
Password: VALUE
user: sam pass: VALUE
login sam, password VALUE
pw=VALUE
my password's VALUE
the root password is VALUE
the password is "VALUE"
pass is VALUE btw
creds are sam:VALUE
creds: sam / VALUE
credentials: sam VALUE
username sam password VALUE
token = TOKEN
api key: TOKEN
API Key → TOKEN
api-key is TOKEN, thanks
here is the token: TOKEN
this is my key TOKEN
the new token is TOKEN (expires in a week)
access token `TOKEN` works
I rotated it, new secret: TOKEN
secret: "TOKEN"
Passwort: VALUE
Das Passwort lautet VALUE
Das Kennwort ist VALUE.
mot de passe : VALUE
le mot de passe est VALUE
la contraseña es VALUE
a senha é VALUE
la password è VALUE
пароль: VALUE
пароль — VALUE
密码是 VALUE
密码：VALUE
パスワードは VALUE です
비밀번호는 VALUE
Enter password: VALUE
Password for 'https://sam@git.example.org': VALUE
sam@h's password: VALUE
Enter passphrase for key '/home/sam/.ssh/id_rsa': VALUE
New password: VALUE
Generated password: VALUE
Your temporary password is VALUE
Temporary password: VALUE
A temporary password is generated for root@localhost: VALUE
Initial admin password: VALUE
Please use the following password to proceed to installation: VALUE
Your API key is: TOKEN
Token: TOKEN
Created token TOKEN
Access key: TOKEN
Secret key: TOKEN
Client secret: TOKEN
Secret access key: TOKEN
bearer TOKEN
"access_token":"TOKEN","expires_in":3600
refresh_token=TOKEN
id_token: TOKEN
set-cookie: session=TOKEN; path=/; secure
cookie: _app_session=TOKEN; a=b
document.cookie = "auth=TOKEN; path=/"
csrf_token = TOKEN
X-CSRF-Token: TOKEN
sessionToken: TOKEN
JSESSIONID=TOKEN0A; Path=/
machine h login sam password VALUE
default login sam password VALUE
db1:5432:*:app:VALUE
[client]\nuser=app\npassword=VALUE
<password>VALUE</password>
<server><id>r</id><username>sam</username><password>VALUE</password></server>
<add key="ApiSecret" value="TOKEN" />
<setting name="Password"><value>VALUE</value></setting>
<input type="password" name="pw" value="VALUE">
<input name="csrf_token" type="hidden" value="TOKEN">
<meta name="csrf-token" content="TOKEN">
<connectionString>Server=h;Password=VALUE</connectionString>
storePassword=VALUE\nkeyAlias=a
signing.keyPassword=VALUE
keytool -list -keystore a.jks -storepass VALUE
jarsigner -storepass VALUE a.jar b
security unlock-keychain -p VALUE login.keychain
fastlane match --password VALUE
[sudo] password for sam: VALUE
echo "VALUE" | sudo -S whoami
echo VALUE | su -c id
printf %s 'VALUE' | docker login -u sam --password-stdin
echo -n VALUE | gh auth login --with-token
echo "sam:VALUE" | chpasswd
passwd --stdin sam <<< VALUE
useradd -p VALUE sam
mkpasswd -m sha-512 VALUE
IDENTIFY VALUE
/msg NickServ IDENTIFY VALUE
AUTH VALUE
USER sam\nPASS VALUE
a1 LOGIN sam VALUE
requirepass VALUE
masterauth VALUE
bind_password VALUE
rootpw VALUE
bindpw VALUE
wpa_passphrase=VALUE
psk="VALUE"
enable secret 0 VALUE
snmp-server community VALUE RO
pre-shared-key VALUE
PreSharedKey = KEY32
PrivateKey = KEY32
"""


#: What stands for a secret in them.
_MARKS: dict[str, Callable[[Source], str]] = {
    "VALUE": password,
    "KEY32": lambda s: s.b64(32),
    "TOKEN": lambda s: s.of(32),
}


def commands(seed: int) -> Iterator[Sample]:
    """Yield commands, files and dialogues with a password or a token in each."""
    s = Source(seed)
    for at, line in enumerate(_COMMANDS.strip().splitlines()):
        mark = next(mark for mark in _MARKS if mark in line)
        secret = _MARKS[mark](s)
        text = secret.join(line.replace(r"\n", "\n").rsplit(mark, 1))
        for place, shown in (("alone", f"{text}\n"), ("between", f"ok\n{text}\ndone\n")):
            yield Sample(f"{at}: {line}", place, shown, (secret,))
