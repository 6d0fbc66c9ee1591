"""Interrupt an embedded AWS at random; `up` must always repair it: python -m tests.deploy.interruptions --rounds 20

Each round fills a table, gives the functions work, begins a deployment with a random parameter, and interrupts it after
a random time: a signal to the server or to the deployment, `stop`, or both. Sometimes the port is taken afterwards, or
`up` asks for another one. Then `up` must succeed, the stack must be complete, the queue must answer at its address, an
executor must take a message out of it, and nothing older than a snapshot may be lost. `--seed` repeats a sequence.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common.planning.packs import Wake
from scripts.embedded import Embedded, find, kill
from scripts.embedded.deployment import client

STAGE = "test"
TABLE = f"minute8-{STAGE}-audit"
ITEMS_PER_ROUND = 200
# Of padding, so that a snapshot takes long.
ITEM_BYTES = 4_000
# A kill may cost what is younger.
SNAPSHOT_AGE_S = 12
MAX_UP_S = 300
# Numbers that the template has as text, texts, and what can be off.
PARAMETERS = (
    *("logRetentionInDays=3", "logRetentionInDays=7", "maximumConcurrency=20", "executorMemoryMb=256"),
    *("packFrom=0", "maxReceiveCount=7", "canary=off", "dashboards=off", "logLevel=DEBUG", "spreadS=2"),
)
# Invocations and messages that are under way when the server is interrupted.
BUSY_WITH = 30
MAX_MESSAGE_S = 120


def main() -> int:
    """Play the rounds; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--state-dir", type=Path)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="interruptions-") as directory:
        player = Player(options.state_dir or Path(directory), random.Random(options.seed))
        try:
            player.up()
            for number in range(options.rounds):
                print(f"round {number}: {player.play(number)}", flush=True)
        finally:
            kill(player.state_dir)
    return 0


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Player:
    """Interrupts the embedded AWS of `state_dir`, and knows what must have survived."""

    def __init__(self, state_dir: Path, chance: random.Random) -> None:
        self.state_dir = state_dir
        self.chance = chance
        # The instant of the write of each round's items.
        self.written_at: dict[int, float] = {}

    def play(self, number: int) -> str:
        """One interruption and its repair. Raises AssertionError if `up` does not repair it."""
        self.write_items(number)
        is_busy = self.chance.random() < 0.5
        if is_busy:
            self.give_work()
        deployment = self.begin_deployment(number) if self.chance.random() < 0.8 else None
        time.sleep(self.chance.uniform(0, 12) if deployment else self.chance.uniform(0, 3))
        name = self.chance.choice(["SIGTERM", "SIGINT", "SIGKILL", "stop", "Ctrl-C", "Ctrl-C and stop"])
        interrupted_at = time.time()
        embedded = self.running()
        if "Ctrl-C" in name and deployment:
            os.killpg(deployment.pid, signal.SIGINT)
        if "stop" in name:
            self.command("stop")
        elif name.startswith("SIG"):
            os.kill(embedded.pid, signal.Signals[name])
            while name != "SIGKILL" and find(self.state_dir):
                time.sleep(0.1)
        if deployment:
            deployment.wait(MAX_UP_S)
        with self.taken_port(embedded.port) if self.chance.random() < 0.3 else contextlib.nullcontext():
            other_port = self.chance.random() < 0.3
            repair_s = self.up(free_port() if other_port else 0)
        may_lose_since = interrupted_at - SNAPSHOT_AGE_S if name == "SIGKILL" else interrupted_at
        self.check(may_lose_since)
        state = "during a deployment" if deployment else "at rest"
        more = (", busy" if is_busy else "") + (", on another port" if other_port else "")
        return f"{name} {state}{more}, up again after {repair_s:.0f} s"

    def give_work(self) -> None:
        """Have functions run while the server is interrupted."""
        embedded = self.running()
        functions, sqs = client(embedded, "lambda"), client(embedded, "sqs")
        url = sqs.get_queue_url(QueueName=f"minute8-{STAGE}-executions")["QueueUrl"]
        for _ in range(BUSY_WITH):
            functions.invoke(FunctionName=f"minute8-{STAGE}-scheduler", InvocationType="Event", Payload=b"{}")
            sqs.send_message(QueueUrl=url, MessageBody=Wake(0).encode(), MessageGroupId="busy")

    def up(self, port: int = 0) -> float:
        began = time.monotonic()
        up = self.command("up", "--port", str(port))
        assert up.returncode == 0, up.stdout + up.stderr
        return time.monotonic() - began

    def command(self, name: str, *options: str) -> subprocess.CompletedProcess[str]:
        command = self._command_line(name, *options)
        return subprocess.run(command, capture_output=True, text=True, timeout=MAX_UP_S, check=False)

    def begin_deployment(self, number: int) -> subprocess.Popen[bytes]:
        # Another parameter each round, so that something is to be deployed.
        command = self._command_line("up", "--param", PARAMETERS[number % len(PARAMETERS)])
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def _command_line(self, name: str, *options: str) -> list[str]:
        common = ["--state-dir", str(self.state_dir), "--stage", STAGE]
        return [sys.executable, "-m", "scripts.embedded", name, *common, *options]

    def running(self) -> Embedded:
        embedded = find(self.state_dir)
        assert embedded, "it does not run"
        return embedded

    @contextlib.contextmanager
    def taken_port(self, port: int) -> Any:
        if find(self.state_dir):
            yield
            return
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", port))
            other.listen()
            yield

    def message_arrives(self, embedded: Embedded, url: str) -> None:
        """The executor takes a message out of its queue: the mapping polls."""
        sqs = client(embedded, "sqs")
        sqs.send_message(QueueUrl=url, MessageBody=Wake(0).encode(), MessageGroupId="check")
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        give_up_at = time.monotonic() + MAX_MESSAGE_S
        while any(
            int(count)
            for count in sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"].values()
        ):
            assert time.monotonic() < give_up_at, "nobody takes messages out of the executions queue"
            time.sleep(1)

    def write_items(self, number: int) -> None:
        dynamodb = client(self.running(), "dynamodb")
        for n in range(ITEMS_PER_ROUND):
            key = {"pk": {"S": f"round-{number}"}, "sk": {"S": str(n)}}
            dynamodb.put_item(TableName=TABLE, Item={**key, "padding": {"S": "x" * ITEM_BYTES}})
        self.written_at[number] = time.time()

    def check(self, may_lose_since: float) -> None:
        """The stack is complete, a message arrives, and older items are there."""
        embedded = self.running()
        [stack] = client(embedded, "cloudformation").describe_stacks(StackName=f"minute8-{STAGE}")["Stacks"]
        assert stack["StackStatus"] in ("CREATE_COMPLETE", "UPDATE_COMPLETE"), stack["StackStatus"]
        functions = client(embedded, "lambda")
        environment = functions.get_function(FunctionName=f"minute8-{STAGE}-scheduler")["Configuration"]
        queue = environment["Environment"]["Variables"]["EXECUTIONS_QUEUE_URL"]
        assert queue.startswith(embedded.endpoint_url), f"{queue} is not on {embedded.endpoint_url}"
        self.message_arrives(embedded, queue)
        dynamodb = client(embedded, "dynamodb")
        for number, written_at in list(self.written_at.items()):
            key = {":pk": {"S": f"round-{number}"}}
            count = dynamodb.query(
                TableName=TABLE,
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues=key,
                Select="COUNT",
            )["Count"]
            if written_at < may_lose_since:
                assert count == ITEMS_PER_ROUND, (
                    f"{count} of {ITEMS_PER_ROUND} items of round {number} are left"
                )
            elif count < ITEMS_PER_ROUND:
                del self.written_at[number]


if __name__ == "__main__":
    sys.exit(main())
