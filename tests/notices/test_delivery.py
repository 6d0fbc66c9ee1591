"""Deliveries: SNS against moto, webhooks against a local server. Refusals and hostile addresses become results."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from moto import mock_aws

from common.clock import Clock
from common.errors import InvalidInput
from common.notices.subscription import Notice, Subscription, SubscriptionState
from common.platform.tenants import Tenants
from common.tenants.secrets import SecretKey
from common.tenants.webhook_secrets import WebhookSecrets, new_secret, signature
from executor.network_guard import NetworkGuard, Resolver
from executor.targets import clients
from executor.targets.http_endpoint import HttpEndpoints
from minute8.notifier import delivery
from minute8.notifier.delivery import Delivery
from minute8.notifier.notifier import notifier
from tests.executor.contexts import ACCOUNT
from tests.executor.servers import Server, serving, trusting
from tests.manual_clock import ManualClock
from tests.notices.conftest import Stage
from tests.notices.test_hostile import failed_runs
from tests.stand_ins import MemoryKms

DECRYPTED_FOR_S = 3_600

TOPIC = f"arn:aws:sns:us-east-1:{ACCOUNT}:news"
SECRET = new_secret()
MESSAGE = Notice("ntc_1", '{"text":"Minute8, alice: 1 job failed (a)."}', 0.0)


@pytest.fixture
def aws() -> Iterator[None]:
    with mock_aws():
        clients._clients.clear()  # made before moto started
        yield
    clients._clients.clear()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as started:
        yield started


def subscription(name: str = "on-call", **target: str) -> Subscription:
    return Subscription("alice", name, target, ("failures",), 0, 0, SubscriptionState(0))


def deliver(
    guard: NetworkGuard | None = None,
    secrets_of: Callable[[str, float], tuple[str, ...]] = lambda tenant, now: (SECRET,),
    clock: Clock | None = None,
) -> Delivery:
    """As in production, except that the resolver knows the server's name and loopback is allowed."""
    guard = guard or NetworkGuard(Resolver(lambda host, port: ["127.0.0.1"]), lambda ip: ip.is_loopback)
    return Delivery(HttpEndpoints(secrets_of, clock or ManualClock(0), guard=guard, tls=trusting))


def subscribed_queue(topic: str, **attributes: str) -> str:
    """The URL of a queue that gets what the topic gets."""
    sqs, sns = boto3.client("sqs"), boto3.client("sns")
    suffix = ".fifo" if topic.endswith(".fifo") else ""
    url = str(sqs.create_queue(QueueName=f"told{suffix}", Attributes=attributes)["QueueUrl"])
    arn = f"arn:aws:sqs:us-east-1:{ACCOUNT}:told{suffix}"
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    return url


def received(url: str) -> list[dict[str, Any]]:
    answer = boto3.client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"])
    return [
        {**message["Attributes"], **json.loads(message["Body"])} for message in answer.get("Messages", [])
    ]


def test_a_topic_gets_the_message_a_subject_and_attributes(aws: None) -> None:
    boto3.client("sns").create_topic(Name="news")
    url = subscribed_queue(TOPIC)
    outcome = deliver()(subscription(kind="sns", arn=TOPIC), MESSAGE)
    assert outcome.ok and outcome.request_id
    (record,) = received(url)
    assert (record["Message"], record["Subject"]) == (MESSAGE.body, "Minute8: alice, on-call")
    assert {name: value["Value"] for name, value in record["MessageAttributes"].items()} == {
        "minute8_tenant": "alice",
        "minute8_subscription": "on-call",
    }


def test_a_fifo_topic_takes_a_message_once(aws: None) -> None:
    boto3.client("sns").create_topic(Name="news.fifo", Attributes={"FifoTopic": "true"})
    url = subscribed_queue(f"{TOPIC}.fifo", FifoQueue="true")
    for _ in range(2):
        assert deliver()(subscription(kind="sns", arn=f"{TOPIC}.fifo"), MESSAGE).ok
    (record,) = received(url)
    assert (record["MessageGroupId"], record["MessageDeduplicationId"]) == ("on-call", "ntc_1")


def test_a_subject_is_one_line_of_what_sns_takes_for_the_longest_names() -> None:
    """SNS: ASCII without control characters, under 100 characters, beginning with a letter, digit or mark."""
    longest = Subscription("t" * 64, "n" * 64, {}, (), 0, 0, SubscriptionState(0))
    subject = delivery.subject_of(longest)
    assert subject.startswith("Minute8: ") and len(subject) < 100
    assert subject.isascii() and subject.isprintable()


@pytest.mark.parametrize("name", ["a\nBcc: x@example.com", "<b>", "ä", "a b", "n" * 65])
def test_a_name_that_could_change_a_subject_is_refused(stage: Stage, name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        stage.subscribe(name=name)
    assert refused.value.field == "name"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            ClientError({"Error": {"Code": "AuthorizationError", "Message": "no"}}, "Publish"),
            "AuthorizationError: no",
        ),
        (ClientError({"Error": {"Code": "KMSDisabled", "Message": "off"}}, "Publish"), "KMSDisabled: off"),
        (ClientError({"Error": {"Code": "Throttled", "Message": "slow"}}, "Publish"), "Throttled: slow"),
        (EndpointConnectionError(endpoint_url="https://sns"), "EndpointConnectionError: Could not connect"),
        (None, "NotFound: "),
    ],
)
def test_a_refusal_of_sns_is_a_failed_delivery(
    stage: Stage, aws: None, monkeypatch: pytest.MonkeyPatch, error: Exception | None, expected: str
) -> None:
    """None: moto itself refuses, because there is no such topic."""

    class Refusing:
        def publish(self, **_: object) -> None:
            assert error
            raise error

    if error:
        monkeypatch.setattr(delivery, "client", lambda *_: Refusing())
    world = stage.world
    real = notifier(
        world.tables,
        world.clock,
        stage.notifier.rules,
        deliver(),
        stage.notifier.pool,
        stage.notifier.reader.pool,
        world.deployment.events,
    )
    stage.subscribe(target={"kind": "sns", "arn": TOPIC})
    world.clock.sleep(1)
    failed_runs(world, "alice", "bad", 1)
    assert real.round(world.clock.now() + 25, world.clock.now() + 45) == {"failed": 1}
    state = stage.state()
    assert state.last_sent.error.startswith(expected) and not state.last_sent.ok
    assert (state.message.tries, state.failing_since) == (1, world.clock.now())


def test_while_kms_refuses_a_message_is_kept_and_its_address_not_disabled(
    stage: Stage, server: Server
) -> None:
    """Four days: an address that fails itself is disabled after three."""
    world, kms = stage.world, MemoryKms()
    key = SecretKey(kms, "key")
    secrets = WebhookSecrets(world.table("tenants"), lambda: key)
    secret = secrets.shown("alice", world.clock.now())
    stage.notifier = replace(stage.notifier, deliver=deliver(secrets_of=secrets.signing, clock=world.clock))
    stage.subscribe(target={"kind": "http", "url": server.url})
    world.clock.sleep(DECRYPTED_FOR_S)
    kms.refuses = "AccessDeniedException"
    failed_runs(world, "alice", "bad", 1)
    results: Counter[str] = Counter()
    for _ in range(4 * 24):
        results += stage.round()
        world.clock.sleep(3_600)
    state = stage.state()
    assert results.keys() == {"failed"} and results["failed"] > 50
    assert "NotSigned" in state.last_sent.error and "now: AccessDeniedException" in state.last_sent.error
    assert (state.disabled_at, state.failing_since, server.requests) == (None, None, [])
    kms.refuses = ""
    assert stage.round() == {"sent": 1}
    (request,) = server.requests
    signed = [secret], request.headers["webhook-id"], int(request.headers["webhook-timestamp"]), request.body
    assert request.headers["webhook-signature"] == signature(*signed)
    assert stage.state().message is None


def test_a_topic_of_another_tenant_or_account_is_refused_before_anything_is_stored(stage: Stage) -> None:
    world = stage.world
    allowed = [f"arn:aws:sns:us-east-1:{ACCOUNT}:carol-*"]
    Tenants(world.table("tenants"), world.clock).create(
        "carol", "", world.clock.now(), {"allowed_targets": allowed}
    )
    foreign_topics = (
        TOPIC,
        "arn:aws:sns:us-east-1:999999999999:carol-news",
        f"arn:aws:sns:eu-west-1:{ACCOUNT}:carol-news",
    )
    for arn in foreign_topics:
        with pytest.raises(InvalidInput, match="allows this tenant"):
            stage.subscribe("carol", target={"kind": "sns", "arn": arn})
    assert stage.store.stored.of_tenant("carol") == []
    stage.subscribe("carol", target={"kind": "sns", "arn": f"arn:aws:sns:us-east-1:{ACCOUNT}:carol-news"})


def test_a_webhook_gets_the_signed_message_with_tenant_and_subscription(server: Server) -> None:
    assert deliver()(subscription(kind="http", url=server.url), MESSAGE).ok
    (request,) = server.requests
    assert (request.method, request.body.decode()) == ("POST", MESSAGE.body)
    assert request.headers["webhook-id"] == "ntc_1"
    assert request.headers["webhook-signature"].startswith("v1,")
    names = ("minute8-tenant", "minute8-subscription", "content-type")
    assert {name: request.headers[name] for name in names} == {
        "minute8-tenant": "alice",
        "minute8-subscription": "on-call",
        "content-type": "application/json",
    }


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_an_internal_host_is_a_failure_and_not_followed(server: Server, status: int) -> None:
    server.reply = lambda handler: (status, {"Location": "http://169.254.169.254/latest/"}, b"")
    assert not deliver()(subscription(kind="http", url=server.url), MESSAGE).ok
    assert len(server.requests) == 1


@pytest.mark.parametrize("address", ["169.254.169.254", "10.0.0.1", "127.0.0.1", "::1", "fd00:ec2::254"])
def test_a_name_that_leads_to_an_internal_host_is_not_called(server: Server, address: str) -> None:
    guard = NetworkGuard(Resolver(lambda host, port: [address]))
    outcome = deliver(guard)(subscription(kind="http", url=server.url), MESSAGE)
    assert (outcome.ok, outcome.error_type) == (False, "ForbiddenAddress")
    assert server.connections == 0


def test_an_answer_that_drips_ends_at_the_time_limit(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "TIMEOUT_S", 0.3)

    def drips(handler: Any) -> None:
        for byte in b"HTTP/1.1 200 OK\r\n" * 100:
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
            time.sleep(0.05)

    server.reply = drips
    began = time.monotonic()
    outcome = deliver()(subscription(kind="http", url=server.url), MESSAGE)
    assert (outcome.ok, outcome.error_type) == (False, "TimedOut")
    assert time.monotonic() - began < 30
