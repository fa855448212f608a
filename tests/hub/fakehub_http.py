"""The loopback Hub's side of HTTP: which request does what, as the Hub's API has it."""

import base64
import re
import time
import traceback
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from tests.hub.fakehub_repos import Commit, Entry, Refused, Repo, folder_told

if TYPE_CHECKING:
    from tests.hub.fakehub import Account, FakeHub, Fault

Route = Callable[..., None]
_ROUTES: list[tuple[str, re.Pattern[str], Route]] = []
_KINDS = {"models": "model", "datasets": "dataset", "spaces": "space"}
_NAME = r"(?P<name>[^/]+/[^/]+)"
_REPO = rf"/api/(?P<kind>models|datasets|spaces)/{_NAME}"


def route(methods: str, pattern: str) -> Callable[[Route], Route]:
    """Let a function answer requests of a shape; named groups are its arguments."""

    def add(function: Route) -> Route:
        for method in methods.split():
            _ROUTES.append((method, re.compile(pattern), function))
        return function

    return add


class Handler(BaseHTTPRequestHandler):
    """One connection; `hub` is set by who serves."""

    hub: "FakeHub"
    protocol_version = "HTTP/1.1"
    body: bytes = b""
    query: dict[str, list[str]]
    _fault: "Fault | None" = None

    def log_message(self, *_: object) -> None:
        """Say nothing: tests read `FakeHub.requests`."""

    def do_GET(self) -> None:
        self._answer()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

    def _answer(self) -> None:
        self.body = self._read_body()
        if self.body and not self.path.startswith("/_lfs/"):
            self.hub.disk.keep("bodies", self.body)
        parts = urlsplit(self.path)
        self.query = parse_qs(parts.query)
        if (gate := self.hub.gate_for(self.command, self.path)) is not None:
            gate.hold()
        self._fault = fault = self.hub.fault_for(self.command, self.path)
        if fault is not None:
            time.sleep(fault.delay_s)
            if not fault.done and (fault.drop or fault.status):
                return self._fail(fault)
        try:
            self._routed(parts.path)
        except Refused as exc:
            self.reply({"error": exc.message}, status=exc.status, headers=exc.headers)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        except Exception:
            traceback.print_exc()
            self.reply({"error": "the loopback Hub has a bug"}, status=500)

    def _routed(self, path: str) -> None:
        for method, pattern, function in _ROUTES:
            found = pattern.fullmatch(path)
            if method == self.command and found:
                arguments = {k: unquote(v or "") for k, v in found.groupdict().items()}
                return function(self, **arguments)
        raise Refused(404, f"The loopback Hub does not know {self.command} {path}")

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _fail(self, fault: "Fault") -> None:
        if fault.drop:
            self._noted(0, 0)
            self.close_connection = True
            self.connection.close()
            return
        body = fault.body or b'{"error":"made to fail"}'
        self._write(fault.status, body, "application/json", fault.headers)

    def reply(
        self,
        value: object = b"",
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        kind: str = "application/json",
    ) -> None:
        """Answer, unless what goes wrong is that the answer is lost."""
        data = value if isinstance(value, bytes) else msgspec.json.encode(value)
        fault = self._fault
        if fault is not None and fault.done and (fault.drop or fault.status):
            return self._fail(fault)
        self._write(status, data, kind, headers or {})

    def _write(self, status: int, data: bytes, kind: str, headers: Mapping[str, str]) -> None:
        keep = self._fault.truncate if self._fault is not None else None
        sent = b"" if self.command == "HEAD" else data if keep is None else data[:keep]
        self._noted(status, len(sent))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("X-Request-Id", f"Root=1-{len(self.hub.requests):08x}")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(sent)
        if keep is not None:
            self.close_connection = True

    def _noted(self, status: int, sent: int) -> None:
        from tests.hub.fakehub import Request

        has_token = "Authorization" in self.headers
        one = Request(self.command, self.path, status, len(self.body), sent, has_token)
        with self.hub.lock:
            self.hub.requests.append(one)

    # Who asks for what

    def json(self) -> Any:
        """Return the body as JSON."""
        return msgspec.json.decode(self.body or b"{}")

    def account(self, *, needed: bool = False) -> "Account | None":
        """Return who asks, None without a token."""
        given = self.headers.get("Authorization", "")
        if not given:
            if needed:
                raise Refused(401, "Invalid username or password.")
            return None
        account = self.hub.accounts.get(given.removeprefix("Bearer ").strip())
        if account is None:
            raise Refused(401, "Invalid credentials in Authorization header")
        return account

    def repo(self, kind: str, name: str, *, write: bool = False) -> Repo:
        """Return a repository that this one may read, or write to."""
        account = self.account()
        repo = self.hub.repos.get((kind, name))
        hidden = repo is not None and repo.private
        if repo is None or (hidden and not (account and account.is_of(repo.owner))):
            status = 404 if account else 401
            raise Refused(status, "Repository not found", code="RepoNotFound")
        if write and account is None:
            raise Refused(401, "Invalid username or password.")
        if write and account and not (account.is_of(repo.owner) and account.role == "write"):
            raise Refused(403, "You need a write token with access to this repository.")
        return repo


def _is_true(handler: Handler, name: str) -> bool:
    return handler.query.get(name, ["false"])[0].lower() in ("true", "1")


# Accounts and repositories


@route("GET", "/api/whoami-v2")
def _whoami(handler: Handler) -> None:
    account = handler.account(needed=True)
    assert account is not None
    token = {"type": "access_token", "accessToken": {"displayName": "t", "role": account.role}}
    orgs = [{"type": "org", "name": name, "fullname": name} for name in account.orgs]
    name = account.user
    handler.reply({"type": "user", "name": name, "fullname": name, "orgs": orgs, "auth": token})


@route("POST", "/api/validate-yaml")
def _validate(handler: Handler) -> None:
    handler.reply({"errors": [], "warnings": []})


@route("POST", "/api/repos/create")
def _create(handler: Handler) -> None:
    account, asked = handler.account(needed=True), handler.json()
    assert account is not None
    kind, short = asked.get("type", "model"), asked["name"].rpartition("/")[2]
    owner = asked.get("organization") or asked["name"].rpartition("/")[0] or account.user
    if account.role != "write" or not account.is_of(owner):
        raise Refused(403, "You don't have the rights to create a repo under this namespace")
    name, hub = f"{owner}/{short}", handler.hub
    url = f"{hub.url}/{'' if kind == 'model' else kind + 's/'}{name}"
    with hub.lock:
        if (kind, name) in hub.repos:
            told = {"error": f"You already created this {kind} repo", "url": url}
            return handler.reply(told, status=409)
        private = asked.get("private", asked.get("visibility") == "private")
        hub.add_repo(name, kind=kind, private=bool(private))
    handler.reply({"url": url, "name": name})


@route("DELETE", "/api/repos/delete")
def _delete(handler: Handler) -> None:
    account, asked = handler.account(needed=True), handler.json()
    assert account is not None
    owner = asked.get("organization") or account.user
    key = asked.get("type", "model"), f"{owner}/{asked['name'].rpartition('/')[2]}"
    handler.repo(*key, write=True)
    del handler.hub.repos[key]
    handler.reply(b"OK", kind="text/plain")


@route("GET HEAD", _REPO + r"(?:/revision/(?P<revision>[^/]+))?")
def _info(handler: Handler, kind: str, name: str, revision: str) -> None:
    repo = handler.repo(_KINDS[kind], name)
    sha = repo.resolve(revision or "main")
    files = [{"rfilename": path} for path in sorted(repo.commits[sha].tree)]
    told = {"_id": "0", "id": name, "author": repo.owner, "sha": sha, "private": repo.private}
    told |= {"lastModified": repo.commits[sha].at, "createdAt": repo.commits[sha].at}
    told |= {"gated": False, "disabled": False, "downloads": 0, "likes": 0, "tags": []}
    handler.reply({**told, "siblings": files}, headers={"X-Repo-Commit": sha})


@route("PUT", _REPO + "/settings")
def _settings(handler: Handler, kind: str, name: str) -> None:
    repo, asked = handler.repo(_KINDS[kind], name, write=True), handler.json()
    if "visibility" in asked:
        repo.private = asked["visibility"] == "private"
    repo.private = bool(asked.get("private", repo.private))
    handler.reply({"private": repo.private})


# Revisions


@route("GET", _REPO + "/refs")
def _refs(handler: Handler, kind: str, name: str) -> None:
    repo = handler.repo(_KINDS[kind], name)
    told: dict[str, list[dict[str, str]]] = {"converts": [], "branches": [], "tags": []}
    for branch, sha in repo.branches.items():
        converted = branch.startswith("refs/convert/")
        short = branch.removeprefix("refs/convert/")
        ref = branch if converted else f"refs/heads/{branch}"
        one = {"name": short, "ref": ref, "targetCommit": sha}
        told["converts" if converted else "branches"].append(one)
    for tag, sha in repo.tags.items():
        told["tags"].append({"name": tag, "ref": f"refs/tags/{tag}", "targetCommit": sha})
    handler.reply(told)


@route("GET", _REPO + "/commits/(?P<revision>[^/]+)")
def _commits(handler: Handler, kind: str, name: str, revision: str) -> None:
    repo = handler.repo(_KINDS[kind], name)
    handler.reply([_commit_told(one) for one in repo.history(revision)])


def _commit_told(one: Commit) -> dict[str, object]:
    authors = [{"user": one.by}]
    return {"id": one.sha, "title": one.title, "message": "", "date": one.at, "authors": authors}


@route("POST DELETE", _REPO + "/branch/(?P<branch>[^/]+)")
def _branch(handler: Handler, kind: str, name: str, branch: str) -> None:
    repo = handler.repo(_KINDS[kind], name, write=True)
    if handler.command == "DELETE":
        repo.branches.pop(branch, None)
    elif branch in repo.branches:
        raise Refused(409, "Reference already exists")
    else:
        repo.branches[branch] = repo.resolve(handler.json().get("startingPoint") or "main")
    handler.reply({})


@route("POST", _REPO + "/tag/(?P<revision>[^/]+)")
def _tag(handler: Handler, kind: str, name: str, revision: str) -> None:
    repo = handler.repo(_KINDS[kind], name, write=True)
    tag = handler.json()["tag"]
    if tag in repo.tags:
        raise Refused(409, "Reference already exists")
    repo.tags[tag] = repo.resolve(revision)
    handler.reply({})


@route("DELETE", _REPO + "/tag/(?P<tag>[^/]+)")
def _untag(handler: Handler, kind: str, name: str, tag: str) -> None:
    handler.repo(_KINDS[kind], name, write=True).tags.pop(tag, None)
    handler.reply({})


@route("POST", _REPO + "/super-squash/(?P<branch>[^/]+)")
def _squash(handler: Handler, kind: str, name: str, branch: str) -> None:
    repo = handler.repo(_KINDS[kind], name, write=True)
    account = handler.account()
    assert account is not None
    repo.squash(branch, handler.json().get("message") or "squashed", by=account.user)
    handler.reply({})


# Files


@route("GET", _REPO + "/tree/(?P<revision>[^/]+)(?:/(?P<below>.*))?")
def _tree(handler: Handler, kind: str, name: str, revision: str, below: str) -> None:
    repo, hub = handler.repo(_KINDS[kind], name), handler.hub
    recursive = _is_true(handler, "recursive")
    rows = repo.listed(revision, below.strip("/"), recursive=recursive)
    start = int(handler.query.get("cursor", ["0"])[0])
    size = min(int(handler.query.get("limit", [str(hub.page)])[0]), hub.page)
    headers = {"X-Repo-Commit": repo.resolve(revision)}
    if start + size < len(rows):
        path = urlsplit(handler.path).path
        url = f"{hub.url}{path}?recursive={recursive}&cursor={start + size}"
        headers["Link"] = f'<{url}>; rel="next"'
    handler.reply(rows[start : start + size], headers=headers)


@route("POST", _REPO + "/paths-info/(?P<revision>[^/]+)")
def _paths_info(handler: Handler, kind: str, name: str, revision: str) -> None:
    tree = handler.repo(_KINDS[kind], name).tree(revision)
    is_json = "json" in handler.headers.get("Content-Type", "")
    given = handler.json() if is_json else parse_qs(handler.body.decode())
    paths = given.get("paths", [])
    told = []
    for path in [paths] if isinstance(paths, str) else paths:
        if path in tree:
            told.append(tree[path].told(path))
        elif any(other.startswith(f"{path.rstrip('/')}/") for other in tree):
            told.append(folder_told(path))
    handler.reply(told)


@route(
    "GET HEAD", rf"/(?:(?P<kind>datasets|spaces)/)?{_NAME}/resolve/(?P<revision>[^/]+)/(?P<path>.+)"
)
def _resolve(handler: Handler, kind: str, name: str, revision: str, path: str) -> None:
    repo = handler.repo(_KINDS[kind or "models"], name)
    sha = repo.resolve(revision)
    entry = repo.commits[sha].tree.get(path)
    if entry is None:
        raise Refused(404, "Entry not found", code="EntryNotFound", commit=sha)
    headers = {"X-Repo-Commit": sha, "ETag": f'"{entry.git_id}"'}
    if not entry.is_lfs:
        return _give(handler, handler.hub.disk.read(entry), headers)
    headers |= {"X-Linked-Etag": f'"{entry.name}"', "X-Linked-Size": str(entry.size)}
    headers["Location"] = f"{handler.hub.blobs_url}/_blobs/{entry.name}"
    handler.reply(status=302, headers=headers, kind="text/plain")


@route("GET HEAD", "/_blobs/(?P<oid>[0-9a-f]{64})")
def _blob(handler: Handler, oid: str) -> None:
    if handler.headers.get("Authorization"):
        raise Refused(400, "Only one auth mechanism allowed")  # as a presigned address says
    data = handler.hub.disk.lfs(oid)
    if data is None:
        raise Refused(404, "No such key")
    _give(handler, data, {"ETag": f'"{oid}"'})


def _give(handler: Handler, data: bytes, headers: dict[str, str]) -> None:
    headers = {**headers, "Accept-Ranges": "bytes"}
    kind, size = "application/octet-stream", len(data)
    found = re.fullmatch(r"bytes=(\d*)-(\d*)", handler.headers.get("Range", ""))
    if found is None:
        return handler.reply(data, headers=headers, kind=kind)
    first, last = found.groups()
    start = int(first) if first else max(0, size - int(last))
    end = min(int(last), size - 1) if first and last else size - 1
    if start >= size:
        headers["Content-Range"] = f"bytes */{size}"
        return handler.reply(status=416, headers=headers, kind=kind)
    headers["Content-Range"] = f"bytes {start}-{end}/{size}"
    handler.reply(data[start : end + 1], status=206, headers=headers, kind=kind)


# Uploads


@route("POST", rf"/(?:(?P<kind>datasets|spaces)/)?{_NAME}\.git/info/lfs/objects/batch")
def _batch(handler: Handler, kind: str, name: str) -> None:
    repo = handler.repo(_KINDS[kind or "models"], name, write=True)
    objects = [_upload_of(handler, repo, one) for one in handler.json()["objects"]]
    many = any("chunk_size" in _upload_header(one) for one in objects)
    told = {"transfer": "multipart" if many else "basic", "objects": objects}
    handler.reply(told, kind="application/vnd.git-lfs+json")


def _upload_header(one: dict[str, Any]) -> dict[str, str]:
    header: dict[str, str] = one.get("actions", {}).get("upload", {}).get("header", {})
    return header


def _upload_of(handler: Handler, repo: Repo, asked: dict[str, Any]) -> dict[str, Any]:
    hub, oid, size = handler.hub, asked["oid"], asked["size"]
    told: dict[str, Any] = {"oid": oid, "size": size}
    if hub.disk.lfs_entry(oid) is not None:
        return told
    href, header = f"{hub.blobs_url}/_lfs/put/{oid}", {}
    if hub.multipart_over is not None and size > hub.multipart_over:
        count = -(-size // hub.part_size)
        urls = {f"{n:05d}": f"{hub.blobs_url}/_lfs/part/{oid}/{n}" for n in range(1, count + 1)}
        href, header = f"{hub.url}/_lfs/complete/{oid}", {"chunk_size": str(hub.part_size), **urls}
    verify = {"href": f"{hub.url}/_lfs/verify/{repo.kind}/{repo.name}", "header": {}}
    told["actions"] = {"upload": {"href": href, "header": header}, "verify": verify}
    return told


@route("PUT", "/_lfs/put/(?P<oid>[0-9a-f]{64})")
def _put(handler: Handler, oid: str) -> None:
    _stored(handler, handler.body, oid)
    handler.reply(headers={"ETag": f'"{oid}"'})


def _stored(handler: Handler, data: bytes, oid: str) -> None:
    if handler.hub.disk.put_lfs(data).name != oid:
        raise Refused(400, "What came is not what was announced")


@route("PUT", r"/_lfs/part/(?P<oid>[0-9a-f]{64})/(?P<number>\d+)")
def _part(handler: Handler, oid: str, number: str) -> None:
    path = handler.hub.disk.keep("parts", handler.body)
    with handler.hub.lock:
        handler.hub.parts.setdefault(oid, {})[int(number)] = path
    handler.reply(headers={"ETag": f'"part{number}"'})


@route("POST", "/_lfs/complete/(?P<oid>[0-9a-f]{64})")
def _complete(handler: Handler, oid: str) -> None:
    parts = handler.hub.parts.pop(oid, {})
    _stored(handler, b"".join(parts[number].read_bytes() for number in sorted(parts)), oid)
    handler.reply({})


@route("POST", rf"/_lfs/verify/\w+/{_NAME}")
def _verify(handler: Handler, name: str) -> None:
    asked = handler.json()
    entry = handler.hub.disk.lfs_entry(asked["oid"])
    if entry is None or entry.size != asked["size"]:
        raise Refused(404, "LFS object not found")
    handler.reply({})


@route("GET", _REPO + "/lfs-files")
def _lfs_files(handler: Handler, kind: str, name: str) -> None:
    repo = handler.repo(_KINDS[kind], name)
    found = {e.name: (p, e) for c in repo.commits.values() for p, e in c.tree.items() if e.is_lfs}
    at = "2026-01-01T00:00:00.000Z"
    handler.reply(
        [
            {"fileOid": e.name, "filename": p, "oid": e.name, "pushedAt": at, "size": e.size}
            for p, e in found.values()
        ]
    )


@route("POST", _REPO + "/lfs-files/batch")
def _drop_lfs(handler: Handler, kind: str, name: str) -> None:
    handler.repo(_KINDS[kind], name, write=True)
    handler.hub.disk.drop_lfs(handler.json()["deletions"]["sha"])
    handler.reply({})


@route("POST", _REPO + "/preupload/(?P<revision>[^/]+)")
def _preupload(handler: Handler, kind: str, name: str, revision: str) -> None:
    from tests.hub.fakehub import is_lfs

    tree = handler.repo(_KINDS[kind], name, write=True).tree(revision)
    told = []
    for file in handler.json()["files"]:
        path, there = file["path"], tree.get(file["path"])
        sample = base64.b64decode(file.get("sample") or "")
        handler.hub.disk.keep("bodies", sample)
        mode = "lfs" if is_lfs(path, sample, file["size"]) else "regular"
        oid = there.name if there else None
        told.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
    handler.reply({"files": told})


@route("POST", _REPO + "/commit/(?P<branch>[^/]+)")
def _commit(handler: Handler, kind: str, name: str, branch: str) -> None:
    repo = handler.repo(_KINDS[kind], name, write=True)
    account = handler.account()
    assert account is not None
    with repo.lock:
        if branch not in repo.branches:
            raise Refused(404, f"Invalid rev id: {branch}", code="RevisionNotFound")
        header, add, delete = _operations(handler, repo.tree(branch))
        parent = header.get("parentCommit")
        if parent and parent != repo.branches[branch]:
            raise Refused(412, "A commit has happened since. Please refresh and try again.")
        sha = repo.add_commit(branch, header["summary"], add, delete, by=account.user)
    url = f"{handler.hub.url}/{'' if kind == 'models' else kind + '/'}{name}/commit/{sha}"
    handler.reply({"success": True, "commitUrl": url, "commitOid": sha, "hookOutput": ""})


def _operations(
    handler: Handler, tree: Mapping[str, Entry]
) -> tuple[dict[str, Any], dict[str, Entry], set[str]]:
    header: dict[str, Any] = {}
    add: dict[str, Entry] = {}
    delete: set[str] = set()
    for line in filter(None, handler.body.splitlines()):
        one = msgspec.json.decode(line)
        value, path = one["value"], one["value"].get("path", "")
        if one["key"] == "header":
            header = value
        elif one["key"] == "file":
            add[path] = handler.hub.disk.put_plain(base64.b64decode(value["content"]))
        elif one["key"] == "lfsFile":
            entry = handler.hub.disk.lfs_entry(value["oid"])
            if entry is None:
                raise Refused(400, f"LFS pointer pointed to a file that does not exist: {path}")
            add[path] = entry
        elif one["key"] == "deletedFile":
            if path not in tree:
                raise Refused(404, "A file with this name doesn't exist", code="EntryNotFound")
            delete.add(path)
        elif one["key"] == "deletedFolder":
            delete |= {other for other in tree if other.startswith(f"{path.rstrip('/')}/")}
    return header, add, delete
