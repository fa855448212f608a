"""Ways into object stores: file systems to mirror with, options for Lance, and what errors mean.

Credentials are those that the store's other tools find: the environment, files of the user, or the
machine's own role. Nothing of them is kept, logged or put in a message.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from msgspec import Struct

from funes_ls.hub.spec import MemorySpec
from funes_ls.indexer.errors import BackendError, FunesError, MemoryStateError, UsageError

_CONNECT_S = 10
_ANSWER_S = 30
_TRIES = 3
_NAMES = {"s3": "S3", "gs": "Google Cloud Storage", "az": "Azure Blob Storage"}
_SIGN_IN = {
    "s3": "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE.",
    "gs": "Run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS.",
    "az": "Set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY.",
}
#: How the libraries word what happened; the first that fits counts.
_REFUSED = re.compile(
    r"ACCESS.?DENIED|INVALID.?ACCESS.?KEY|SIGNATURE.?DOES.?NOT.?MATCH|EXPIRED.?TOKEN|TOKEN.?EXPIRED"
    r"|INVALID.?CLIENT.?TOKEN|MISSING.?AUTHENTICATION|AuthenticationFailed|AuthorizationFailure"
    r"|OAuth2 access token|TokenRequest|PermissionDenied|Unauthenticated|Unauthorized|Forbidden"
    r"|NoCredentials|CredentialsNotLoaded"
    r"|failed to (?:get|load).{0,20}credential"
    r"|(?:HTTP status|status:|HTTP response code) 40[13]",
    re.IGNORECASE,
)
_NO_PLACE = re.compile(
    r"NO.?SUCH.?BUCKET|ContainerNotFound|ContainerBeingDeleted|BucketNotFound"
    r"|bucket does not exist",
    re.IGNORECASE,
)
_OFFLINE = re.compile(
    r"NETWORK.?CONNECTION|ConnectError|kind: (?:Connect|Timeout|Interrupted|Request)"
    r"|could ?n.t (?:resolve|connect)|connection (?:refused|reset)|timed out|dns error"
    r"|No route to host|network is unreachable|unable to connect|USER_INITIATED|curlCode",
    re.IGNORECASE,
)
_BUSY = re.compile(r"status: (?:408|429|5\d\d)")
_GONE = re.compile(r"not found|NO.?SUCH.?KEY|RESOURCE_NOT_FOUND|BlobNotFound", re.IGNORECASE)
_RACE = re.compile(
    r"commit conflict|concurrent|already exists|conflict|PRECONDITION|retry.{0,30}transaction",
    re.IGNORECASE,
)
_CODE = re.compile(r"AWS Error ([A-Z_]{3,40})|<Code>([A-Za-z]{3,40})</Code>|status: (\d{3})")


class Access(Struct, frozen=True):
    """How one store is reached.

    Attributes:
        scheme: `s3`, `gs` or `az`.
        files: A file system of pyarrow.
        options: The same for Lance.
    """

    scheme: str
    files: Any
    options: dict[str, str]


class RaceLost(Exception):
    """Another writer was first."""


class FileGone(Exception):
    """A file that was listed is there no more."""


def access(spec: MemorySpec, env: Mapping[str, str]) -> Access:
    """Return the way to a store; nothing is asked of the network yet.

    Raises:
        FunesError: what is needed to get there is not set, or not installed.
    """
    scheme = spec.text.partition("://")[0]
    ways = {"s3": _s3, "gs": _gs, "az": _az}
    try:
        files, options = ways[scheme](env)
    except FunesError:
        raise
    except Exception as exc:  # pyarrow was built without this store, or takes no such address
        raise BackendError(
            f"{_NAMES[scheme]} cannot be used here.",
            hint="Reinstall pyarrow from its wheel, and check the store's settings.",
            kind="unsupported",
        ) from exc
    limits = {
        "timeout": f"{_ANSWER_S}s",
        "connect_timeout": f"{_CONNECT_S}s",
        "client_max_retries": str(_TRIES),
        "client_retry_timeout": str(_ANSWER_S),
    }
    return Access(scheme, files, {**limits, **options})


def _s3(env: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
    from pyarrow import fs

    endpoint = _first(env, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    region = _first(env, "AWS_REGION", "AWS_DEFAULT_REGION")
    if endpoint and not region:
        region = "us-east-1"  # stores that are not Amazon's have no regions, signatures need one
    is_open = env.get("AWS_SKIP_SIGNATURE", "").lower() in ("1", "true")
    given: dict[str, Any] = {
        "connect_timeout": _CONNECT_S,
        "request_timeout": _ANSWER_S,
        "retry_strategy": fs.AwsStandardS3RetryStrategy(max_attempts=_TRIES),
        "background_writes": False,
    }
    options = {}
    if endpoint:
        scheme, _, place = endpoint.rpartition("://")
        given |= {"endpoint_override": place.rstrip("/"), "scheme": scheme or "https"}
        options["aws_endpoint"] = f"{scheme or 'https'}://{place.rstrip('/')}"
        if scheme == "http":
            options["allow_http"] = "true"
    if region:
        given["region"] = options["aws_region"] = region
    if is_open:
        given["anonymous"] = True
        options["aws_skip_signature"] = "true"
    elif key := env.get("AWS_ACCESS_KEY_ID", ""):
        secret, session = env.get("AWS_SECRET_ACCESS_KEY", ""), env.get("AWS_SESSION_TOKEN", "")
        given |= {"access_key": key, "secret_key": secret, "session_token": session or None}
        options |= {"aws_access_key_id": key, "aws_secret_access_key": secret}
        if session:
            options["aws_session_token"] = session
    return fs.S3FileSystem(**given), options


def _gs(env: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
    from pyarrow import fs

    options = {}
    if account := env.get("GOOGLE_APPLICATION_CREDENTIALS", ""):
        options["google_application_credentials"] = account
    return fs.GcsFileSystem(retry_time_limit=timedelta(seconds=_CONNECT_S)), options


def _az(env: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
    from pyarrow import fs

    account = _first(env, "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT")
    if not account:
        raise UsageError("Which Azure storage account is meant is not set.", hint=_SIGN_IN["az"])
    given: dict[str, Any] = {"account_name": account}
    options = {"azure_storage_account_name": account}
    if key := _first(env, "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY"):
        given["account_key"] = options["azure_storage_account_key"] = key
    elif token := _first(env, "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"):
        given["sas_token"] = options["azure_storage_sas_key"] = token
    return fs.AzureFileSystem(**given), options


def _first(env: Mapping[str, str], *names: str) -> str:
    return next((env[name] for name in names if env.get(name)), "")


def explained(exc: BaseException, spec: MemorySpec, *, writing: bool = False) -> Exception:
    """Return what an error of one of the libraries means; none of its words, but a short code.

    Args:
        exc: As it came.
        spec: The memory that was asked for.
        writing: Whether something was to be changed.
    """
    text = f"{type(exc).__name__} {exc}"
    store = _NAMES[spec.text.partition("://")[0]]
    if _NO_PLACE.search(text):
        return no_bucket(spec)
    if _REFUSED.search(text) or isinstance(exc, PermissionError):
        return _refused(spec, store, writing=writing)
    if _OFFLINE.search(text) and not _BUSY.search(text):
        return MemoryStateError(
            f"{store} cannot be reached for {spec.text}.",
            hint="Check the network, and AWS_ENDPOINT_URL where one is set."
            if store == "S3"
            else "Check the network.",
            kind="offline",
        )
    if writing and _RACE.search(text):
        return RaceLost()
    if isinstance(exc, FileNotFoundError) or _GONE.search(text):
        return FileGone()
    code = _CODE.search(text)
    told = f" ({next(filter(None, code.groups()))})" if code else ""
    return BackendError(
        f"{store} failed over {spec.text}{told}.", hint="Run the command again later.", kind="hub"
    )


def no_bucket(spec: MemorySpec) -> MemoryStateError:
    """Return that there is no such bucket."""
    return MemoryStateError(
        f"There is no bucket {spec.bucket}.",
        hint="Check the name, or make the bucket with the store's own tools.",
        kind="missing",
    )


def _refused(spec: MemorySpec, store: str, *, writing: bool) -> MemoryStateError:
    hint = _SIGN_IN[spec.text.partition("://")[0]]
    if writing:
        return MemoryStateError(
            f"Your credentials may not write to {spec.text}.", hint=hint, kind="read_only_token"
        )
    return MemoryStateError(
        f"{store} does not let you read {spec.text}.",
        hint=f"{hint} An engine that runs already learns of it after `funes engine stop`.",
        kind="unauthorised",
    )
