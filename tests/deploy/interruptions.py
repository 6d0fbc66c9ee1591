"""Interrupt an embedded AWS at random; `up` must always repair it: python -m tests.deploy.interruptions --rounds 20

Each round fills a table, begins a deployment, and interrupts it after a random time: a signal to the server or to the
deployment, `stop`, or both. Sometimes the port is taken afterwards. Then `up` must succeed, the stack must be complete,
the queue must answer at its address, and nothing older than a snapshot may be lost. `--seed` repeats a sequence.
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
            repair_s = self.up()
        may_lose_since = interrupted_at - SNAPSHOT_AGE_S if name == "SIGKILL" else interrupted_at
        self.check(may_lose_since)
        return f"{name} {'during a deployment' if deployment else 'at rest'}, up again after {repair_s:.0f} s"

    def up(self) -> float:
        began = time.monotonic()
        up = self.command("up", "--port", "0")
        assert up.returncode == 0, up.stdout + up.stderr
        return time.monotonic() - began

    def command(self, name: str, *options: str) -> subprocess.CompletedProcess[str]:
        command = self._command_line(name, *options)
        return subprocess.run(command, capture_output=True, text=True, timeout=MAX_UP_S, check=False)

    def begin_deployment(self, number: int) -> subprocess.Popen[bytes]:
        # Another parameter each round, so that something is to be deployed.
        command = self._command_line("up", "--param", f"logRetentionInDays={(1, 3, 5, 7)[number % 4]}")
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
        client(embedded, "sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
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
