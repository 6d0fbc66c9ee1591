"""One version of Minute8 in a process of its own: `python player.py CHECKOUT` imports that checkout's code.

It takes one JSON line per command, and answers with one. It uses the production code and `tests/worlds.py` as they are
in that checkout, and nothing of the present one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

# Only answers go there: what the code logs goes to stderr.
answers, sys.stdout = sys.stdout, sys.stderr
sys.path.insert(0, str(Path(sys.argv[1]).resolve()))

import tests.worlds  # noqa: E402
from tests.simulation.memory_dynamodb import MemoryDynamoDB  # noqa: E402

# What this version calls what is used here, no type checker knows.
worlds: Any = tests.worlds

TABLES = ("jobs", "due", "tenants", "audit", "runs")
WRITES = {
    *("put_item", "update_item", "delete_item", "transact_write_items", "batch_write_item"),
    *("batch_execute_statement", "send_message_batch"),
}


Killed: Any = worlds.Killed


class Player:
    """A world of this version, that can be given another one's state and gives its own."""

    def __init__(self) -> None:
        self._dynamodb: Any = MemoryDynamoDB()
        self._dynamodb.before = self._count
        self.world: Any = worlds.make_world(
            self._dynamodb,
            "2026-11-21T03:12:00Z",
            tenants=worlds.StoredOnDemand(worlds.Table(self._dynamodb, "test-tenants")),
        )
        self._send, self.world.sqs.send_message_batch = self.world.sqs.send_message_batch, self._counted_send
        self.world.target.answer = self._answer
        self._writes_left: int | None = None
        self._shares: list[str] = []

    # --- the state: what AWS holds between two deployments --------------------------------------------

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a state, with nothing of this process's own left."""
        self.__init__()  # type: ignore[misc]
        self.world.clock.move_to(state["now"])
        for name, items in state["tables"].items():
            for item in items:
                self._dynamodb.put_item(TableName=f"test-{name}", Item=item)
        for visible_at, message_id, body in state["messages"]:
            self.world.sqs._put(visible_at, body, message_id)
        self.world.target.calls[:] = [(at, context) for at, context in state["calls"]]
        self._shares = list(state["shares"])

    def dump(self) -> dict[str, Any]:
        return {
            "now": self.world.clock.now(),
            "tables": {name: self._dynamodb.scan(TableName=f"test-{name}")["Items"] for name in TABLES},
            "messages": [(at, name, body) for at, _, name, body in sorted(self.world.sqs._waiting)],
            "calls": self.world.target.calls,
            "shares": self._shares,
        }

    # --- the steps ------------------------------------------------------------------------------------

    def put(self, tenant: str, job_id: str, definition: Any) -> None:
        self.world.registry.put(tenant, job_id, definition)

    def store(self, operation: str, *arguments: Any) -> None:
        """`pause`, `resume` or `delete` of a job."""
        getattr(self.world.store, operation)(*arguments)

    def manual(self, operation: str, *arguments: Any) -> None:
        """`run_now`, `retry`, `cancel`."""
        getattr(self.world.manual, operation)(*arguments)

    def backfill(self, *arguments: Any) -> None:
        self.world.manual.backfills.start(*arguments)

    def tick(self) -> None:
        self.world.tick()

    def until(self, text: str) -> None:
        """Deliver what becomes visible, and tick at each minute 8, up to an instant."""
        end = worlds.at(text)
        while True:
            self.plan()
            now = int(self.world.clock.now())
            moments = [now + (480 - now) % 600, self.world.sqs.next_at()]
            moment = min(instant for instant in moments if instant is not None)
            if moment > end:
                break
            self.world.clock.move_to(max(self.world.clock.now(), moment))
            while message := self.world.sqs.receive():
                self.deliver_one(message)
            if int(self.world.clock.now()) % 600 == 480:
                self.tick()
                self.world.clock.sleep(1)
        self.world.clock.move_to(max(self.world.clock.now(), end))

    def next_message(self) -> None:
        """Deliver one message."""
        self.world.clock.move_to(max(self.world.clock.now(), self.world.sqs.next_at()))
        self.deliver_one(self.world.sqs.receive())

    def deliver_one(self, message: Any) -> None:
        self.world.deliver_one(message)

    def cut(self, writes: int, step: str, *arguments: Any) -> bool:
        """Do one step in a process that dies after so many writes. Whether it died; False: it made fewer."""
        self._writes_left = writes
        try:
            getattr(self, step)(*arguments)
        except Killed:
            return True
        finally:
            died, self._writes_left = self._writes_left == 0, None
        return died

    def divide(self, entries: int) -> None:
        """From now on, windows with more due entries than this are divided among planners."""
        from common.planning.shares import PlanningQueue, Shares
        from scheduler.planner import FanOut

        fan_out = FanOut(Shares(self.world.table("due")), PlanningQueue(self, "planning"), entries)  # type: ignore[arg-type]
        object.__setattr__(self.world.scheduler, "fan_out", fan_out)

    def send_message_batch(self, QueueUrl: str, Entries: list[Any]) -> dict[str, Any]:
        """The planning queue's."""
        self._count("send_message_batch")
        self._shares += [entry["MessageBody"] for entry in Entries]
        return {"Successful": Entries}

    def plan(self, shares: int = 1_000) -> None:
        """Planners take so many shares."""
        from common.planning.shares import PlanningQueue, Shares
        from scheduler.planner import SharePlanner

        queue = PlanningQueue(self, "planning")  # type: ignore[arg-type]
        planner = SharePlanner(self.world.scheduler.planner, Shares(self.world.table("due")), queue)
        while self._shares and shares:
            shares -= 1
            planner.plan(self._shares.pop(0))

    def block(self, operation: str, pattern: str, *note: str) -> None:
        """`block` or `release` a target, for all tenants."""
        from common.tenants.blocks import Blocks

        getattr(Blocks(self.world.table("tenants")), operation)(pattern, *note, self.world.clock.now())

    def damage(self, job_id: str) -> None:
        """Nobody can read the due entry of a job any more."""
        for item in self._dynamodb.scan(TableName="test-due")["Items"]:
            if item["sk"]["S"].endswith(f"#{job_id}") and "entry" in item:
                self._dynamodb.put_item(TableName="test-due", Item={**item, "entry": {"S": "[9]"}})

    def garbage(self) -> None:
        """The directory has a group that nobody can read."""
        worlds.put_in_directory(self.world.table("due"), "lunar|full#0")

    def attribute(self, name: str, value: Any) -> None:
        """Set what a parameter of the deployment sets, of the scheduler."""
        object.__setattr__(self.world.scheduler.planner, name, value)

    def deletion(self, operation: str, tenant: str, *arguments: int) -> None:
        """`create` a tenant; `begin` its deletion, `move_on` by so many items."""
        from common.planning.due_index import DueIndex
        from common.platform.deletion import Deletions
        from common.platform.tenants import Tenants

        now, table = self.world.clock.now(), self.world.table
        if operation == "create":
            Tenants(table("tenants")).create(tenant, "", now, {"allowed_targets": ["*"]})
            return
        deletions = Deletions(table("tenants"), table("jobs"), table("runs"), DueIndex(table("due")))
        getattr(deletions, operation)(tenant, now, *arguments)

    # --- faults ---------------------------------------------------------------------------------------

    def _count(self, request: str) -> None:
        if self._writes_left is None or request not in WRITES:
            return
        if self._writes_left == 0:
            raise Killed(request)
        self._writes_left -= 1

    def _counted_send(self, **request: Any) -> Any:
        self._count("send_message_batch")
        return self._send(**request)

    def _answer(self, event: Mapping[str, Any]) -> Any:
        """`flaky` jobs fail at their first attempt, `fails` jobs always."""
        from common.runs.outcome import Outcome

        context = event["minute8"]
        fails = context["job_id"].startswith("fails")
        flaky = context["job_id"].startswith("flaky") and context["attempt"] == 1
        return Outcome(ok=not (fails or flaky))


def main() -> None:
    player = Player()
    for line in sys.stdin:
        step, *arguments = json.loads(line)
        command: Callable[..., Any] = getattr(player, step)
        try:
            answer = {"ok": command(*arguments)}
        except Exception as error:  # noqa: BLE001  the other process raises it
            answer = {"error": f"{step} {arguments}: {error!r}"[:2000]}
        print(json.dumps(answer, default=str), file=answers, flush=True)


main()
