"""AWS clients, built on first use and then kept. Building one takes tens of milliseconds; importing this takes none."""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar
from weakref import WeakValueDictionary

from common import telemetry
from common.errors import Busy
from common.storage import outgoing
from common.storage.wire import DAMAGE, Item

if TYPE_CHECKING:
    from botocore.config import Config as ClientConfig
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sts import STSClient

    from common.storage.signed_calls import PlainCalls
    from common.storage.signed_calls import Requests as DirectRequests

Built = TypeVar("Built")

# The roots of Amazon Trust Services, which all of AWS's endpoints chain to: https://www.amazontrust.com/repository/
# botocore reads its roots for each new connection; of all 127 that takes 30 ms of a whole processor, of these 5 two.
AMAZON_ROOTS: Final = Path(__file__).with_name("amazon_roots.pem")

# More than any function's threads, so that no thread waits for a connection.
_POOL_CONNECTIONS = 64
_building = threading.RLock()
_building_any = threading.Lock()
_read_timeout_s: ContextVar[float | None] = ContextVar("_read_timeout_s", default=None)


@cache
def dynamodb() -> DynamoDBClient:
    """The client for Minute8's tables."""
    with _uncollected():  # every function builds this client first
        client: Any = tuned(_create_client("dynamodb", config=_own_config()))
        if requests := _direct_requests(client):
            from common.storage.signed_calls import DirectDynamoDB

            client = DirectDynamoDB(client, requests)
    dynamodb_client: DynamoDBClient = client
    return dynamodb_client


def _direct_requests(
    client: Any, credentials: Any = None, *, passes_trace_on: bool = True
) -> DirectRequests | None:
    """The hot requests of this client go around botocore: in the functions, if they are plain."""
    if not in_lambda():
        return None
    from common.storage.signed_calls import Requests, is_plain

    credentials = credentials or _session().get_credentials()
    if credentials is None or not is_plain(client):
        return None
    return Requests(client, credentials, _trusted_roots(), passes_trace_on=passes_trace_on)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Build without the garbage collector: it would search everything that was just imported and find nothing.

    The search takes a twelfth of a cold start. These objects live as long as the process, so they are frozen.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was_enabled:
            gc.enable()


def tuned(client: Any) -> Any:
    """Make a DynamoDB client parse items with json alone.

    botocore parses each attribute by its shape, which takes three quarters of the time of a page. The result is the
    same except for binary attributes, and no item has one.
    """
    for operation in ("Query", "GetItem", "BatchGetItem", "UpdateItem"):
        client.meta.events.register(f"before-parse.dynamodb.{operation}", _read_json)
    return client


def _read_json(response_dict: Any, customized_response_dict: dict[str, Any], **_: object) -> None:
    if response_dict["status_code"] == 200:
        customized_response_dict.update(json.loads(response_dict["body"]))
        response_dict["body"] = b"{}"


@cache
def sqs() -> SQSClient:
    """The client for Minute8's own queues.

    Its messages begin a chain of their own. Lambda counts the rounds of a chain by the `Lineage` in a header that
    botocore passes on. A backfill is one long chain, and in its later runs Lambda could refuse to call the target.
    https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
    """
    from botocore.handlers import add_recursion_detection_header

    client: Any = _create_client("sqs", config=_own_config())
    client.meta.events.unregister("before-call", add_recursion_detection_header)
    if requests := _direct_requests(client, passes_trace_on=False):
        from common.storage.signed_calls import DirectSQS

        client = DirectSQS(client, requests)
    sqs_client: SQSClient = client
    return sqs_client


@cache
def events() -> EventBridgeClient:
    """The client for the event bus."""
    client: EventBridgeClient = _create_client("events", config=_own_config())
    return client


@cache
def s3() -> Any:
    """The client for the bucket of exported runs."""
    return _create_client("s3", config=_own_config())


@cache
def sts() -> STSClient:
    """The client for STS. It runs within a run's lease, so it tries once and waits briefly."""
    client: STSClient = _create_client("sts", config=_brief_config())
    return client


@cache
def cloudwatch() -> Any:
    """The client for CloudWatch. Somebody waits for the rest of the answer, so it tries once and waits briefly."""
    return _create_client("cloudwatch", config=_brief_config())


@cache
def functions() -> Any:
    """The client for Lambda that reads how functions are set up. Somebody waits for the rest of the answer."""
    return _create_client("lambda", config=_brief_config())


@cache
def kms() -> Any:
    """What encrypts and decrypts, as boto3's client for KMS does."""
    return _plain_calls()


def on_first_use(build: Callable[[], Built]) -> Built:
    """A client, or what needs one, that is built when one of its attributes is first used.

    For what most invocations never use: a cold start then does not pay for it.
    """
    stand_in: Any = _OnFirstUse(build)
    return stand_in  # type: ignore[no-any-return]


class _OnFirstUse:
    def __init__(self, build: Callable[[], Any]) -> None:
        self._build = cache(build)

    def __getattr__(self, name: str) -> Any:
        with _building:
            built = self._build()
        return getattr(built, name)


# The layer has their models.
TARGETS: Final = ("lambda", "sqs", "sns", "events", "stepfunctions")


def target_client(
    service: str, region: str, read_timeout_s: float, role_keys: tuple[str, str, str] | None = None
) -> Any:
    """A new client that waits `read_timeout_s` for an answer and never tries twice: that would be a second call.

    It waits as long as the calling thread last set with `set_read_timeout`, if it has. `role_keys` are access key,
    secret key and token of an assumed role; without them the client has the function's own rights.
    """
    from botocore.credentials import Credentials

    access_key, secret_key, token = role_keys or (None, None, None)
    is_usual = service in TARGETS
    # A session builds one client at a time. Reading a model takes long: who needs a usual client waits for none.
    with _building if is_usual else _building_any:
        client = (_create_client if is_usual else session_of_all_services().create_client)(
            service,
            region_name=region,
            config=_client_config(read_timeout=read_timeout_s, retries={"total_max_attempts": 1}),
            aws_access_key_id=access_key,
            aws_secret_access_key=secret_key,
            aws_session_token=token,
        )
    client.meta.events.register("before-call", _with_read_timeout)
    credentials = Credentials(*role_keys) if role_keys else None
    if service == "lambda" and (requests := _direct_requests(client, credentials)):
        from common.storage.signed_calls import DirectLambda

        return DirectLambda(client, requests, lambda: _read_timeout_s.get() or read_timeout_s)
    client.meta.events.register("before-send", _goes_out)
    return client


def _goes_out(**_: object) -> None:
    outgoing.note_sent()


def set_read_timeout(read_timeout_s: float) -> None:
    """Set the time limit for answers to the calling thread's next calls of target clients."""
    _read_timeout_s.set(read_timeout_s)


def _with_read_timeout(context: dict[str, Any], **_: object) -> None:
    if (read_timeout_s := _read_timeout_s.get()) is not None:
        context["read_timeout"] = read_timeout_s


def connect(client: Any, count: int = 1) -> None:
    """Open the first connections of a client whose requests are direct. What fails, fails again in a call.

    For the init phase of a Lambda, which has a whole processor: an invocation at 192 MB has a ninth of one.
    """
    from botocore.exceptions import BotoCoreError

    if requests := getattr(client, "requests", None):
        with suppress(BotoCoreError):
            requests.connections.warm_up(count)


def warm_up(*builds: Callable[[], object]) -> None:
    """Build what each invocation uses, and open the first connection to DynamoDB, in the init phase of a Lambda."""
    for build in builds:
        build()
    connect(dynamodb())


def sdk_version() -> str:
    """The version of botocore, which is pinned and part of the Lambda package."""
    import botocore

    return str(botocore.__version__)


def in_lambda() -> bool:
    """Whether this process is a Lambda function's."""
    return "AWS_LAMBDA_FUNCTION_NAME" in os.environ


def _create_client(service: str, **options: Any) -> Any:
    return not_trusting_idle_connections(_session().create_client(service, verify=roots(), **options))


def not_trusting_idle_connections(client: Any) -> Any:
    """Have a client close its connections before a request if it was idle for long, as in a frozen environment."""
    from common.storage.connections import MAX_IDLE_S, LastUse, socket_options

    used, lock = LastUse(), threading.Lock()

    def before_send(**_: object) -> None:
        nonlocal used
        with lock:  # no other thread takes a connection from a pool that is being closed
            if not used.is_within(MAX_IDLE_S):
                client.close()  # the next request opens a new one
            used = LastUse()

    client.meta.events.register("before-send", before_send)
    # botocore has no setting for them.
    client._endpoint.http_session._socket_options[:] = socket_options()
    return client


def roots() -> str | None:
    """The file of the roots to trust; None: botocore's own, or those of AWS_CA_BUNDLE.

    Amazon's alone in the functions, and in the partition where all endpoints are known to chain to them.
    """
    from common.storage.domains import partition_of  # only a new client needs it

    other_partition = partition_of(os.environ.get("AWS_REGION", "")) != "aws"
    if not in_lambda() or other_partition or "AWS_CA_BUNDLE" in os.environ:
        return None
    return str(AMAZON_ROOTS)


def _trusted_roots() -> str | bool:
    """The file of the roots that botocore trusts; True: its own."""
    bundle: str | None = _session().get_config_variable("ca_bundle")
    return roots() or bundle or os.environ.get("REQUESTS_CA_BUNDLE") or True


def new_session() -> Any:
    """botocore's own session: boto3's adds 30 ms for loading resources that are not used here.

    botocore reads only AWS_DEFAULT_REGION. As in the other SDKs and the AWS CLI, AWS_REGION is read first.
    https://docs.aws.amazon.com/sdkref/latest/guide/feature-region.html
    """
    import botocore.session

    session = botocore.session.get_session()
    if region := os.environ.get("AWS_REGION"):
        session.set_config_variable("region", region)
    return session


_session = cache(new_session)


@cache
def session_of_all_services() -> Any:
    """A session that knows the models of all services that this Python has anywhere, and keeps none of them."""
    from botocore.loaders import Loader

    class SmallFiles(dict[tuple[Any, ...], Any]):
        """What a loader keeps, without models: they are megabytes for each service."""

        def __setitem__(self, key: tuple[Any, ...], value: Any) -> None:
            if "load_service_model" not in key and not ("load_data_with_path" in key and "/" in key[1]):
                super().__setitem__(key, value)

    class Models(Loader):
        """Users of a model share it. botocore's loader keeps all that it ever read."""

        used: ClassVar[WeakValueDictionary[tuple[Any, ...], Any]] = WeakValueDictionary()

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self._cache = SmallFiles()

        def load_service_model(self, *names: Any, **more: Any) -> Any:
            key = (*names, *more.values())
            if (model := self.used.get(key)) is None:
                model = self.used[key] = super().load_service_model(*names, **more)
            return model

    session = new_session()
    paths = [Path(path) / "botocore" / "data" for path in sys.path]
    session.register_component(
        "data_loader", Models(extra_search_paths=[str(p) for p in paths if p.is_dir()])
    )
    return session


def model_bytes(service_model: Any) -> int:
    """About the memory that a service's model takes once it is in use: 3 to 7 KB for each of its shapes."""
    return 4_000 * len(service_model.shape_names)


@dataclass(frozen=True, slots=True)
class Clients:
    """The clients of Minute8's own tables and queues, and the region that they are in. Each is built on first use."""

    dynamodb: Callable[[], DynamoDBClient]
    sqs: Callable[[], SQSClient]
    cloudwatch: Callable[[], Any]
    kms: Callable[[], Any]
    functions: Callable[[], Any]
    region: Callable[[], str]


def own_clients() -> Clients:
    """Those of this function."""
    region = lambda: str(new_session().get_config_variable("region"))  # noqa: E731
    return Clients(dynamodb, sqs, cloudwatch, kms, functions, region)


def clients_of(session: Any) -> Clients:
    """Those of a session of boto3's, which has its own credentials and region."""

    def built(service: str) -> Any:
        with _building:  # a session can build only one client at a time
            return session.client(service, config=_own_config())

    return Clients(
        cache(lambda: tuned(built("dynamodb"))),
        cache(partial(built, "sqs")),
        cache(partial(built, "cloudwatch")),
        cache(partial(built, "kms")),
        cache(partial(built, "lambda")),
        lambda: str(session.region_name),
    )


def _own_config() -> ClientConfig:
    # Requests to Minute8's own tables and queues contain no unchecked input. Validation by botocore takes a sixth of a
    # request's processor time.
    return _client_config(parameter_validation=False)


def _brief_config() -> ClientConfig:
    return _client_config(connect_timeout=2, read_timeout=2, retries={"total_max_attempts": 1})


def _client_config(**options: object) -> ClientConfig:
    from botocore.config import Config

    defaults: dict[str, object] = {
        "connect_timeout": 3,
        "read_timeout": 10,
        "retries": {"mode": "standard", "total_max_attempts": 4},
        "max_pool_connections": _POOL_CONNECTIONS,
        "tcp_keepalive": True,
        # Fixed: botocore composes its own for each request, which takes a fifth of the request's time.
        "user_agent": "minute8",
    }
    return Config(**(defaults | options))  # type: ignore[arg-type]


def read_parameter(name: str) -> str | None:
    """The decrypted value of a parameter of SSM; None if it does not exist. Raises Busy if SSM does not return it."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        answer = _plain_calls().call("ssm", "AmazonSSM.GetParameter", {"Name": name, "WithDecryption": True})
    except (BotoCoreError, ClientError, ValueError) as error:
        code = error.response["Error"]["Code"] if isinstance(error, ClientError) else str(error)
        if code == "ParameterNotFound":
            return None
        raise Busy(f"the parameter {name} cannot be read now: {code}") from error
    return str(answer["Parameter"]["Value"])


def _plain_calls() -> PlainCalls:
    from common.storage.signed_calls import PlainCalls

    return PlainCalls(new_session(), roots() or True)


def readable(items: Iterator[Item] | list[Item], entity: Callable[[Item], Built]) -> Iterator[Built]:
    """What can be read of several items. The log names the others: one item stops no list."""
    for item in items:
        try:
            yield entity(item)
        except DAMAGE as error:
            telemetry.logger().error(
                "unreadable item", pk=item.get("pk"), sk=item.get("sk"), error=repr(error)[:300]
            )
