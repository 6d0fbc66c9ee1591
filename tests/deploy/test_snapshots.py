"""Snapshots of the embedded AWS are whole, whatever interrupts them. No server: its services are stood in for."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scripts.embedded import cloudformation
from scripts.embedded.snapshot import MIN_BLOB_BYTES, Snapshots
from tests.waiting import wait_until

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

SLOW_S = 30
BLOB = b"layer" * MIN_BLOB_BYTES


class Server:
    """An embedded AWS of two services, and its snapshots."""

    def __init__(self, directory: Path, persistence: Any, port: int = 4566) -> None:
        self.state: dict[str, Any] = {}
        self.before_saving: Callable[[], object] = lambda: None
        self.snapshots = Snapshots(
            SimpleNamespace(_build_persistence_save_dict=self._readers), persistence, directory, port
        )
        self.snapshots.install_blobs()
        persistence.STATE_DIR = str(self.snapshots.current)

    def _readers(self) -> dict[str, Callable[[], Any]]:
        return {"eventbridge": lambda: self.state, "cloudformation": self._slow}

    def _slow(self) -> Any:
        self.before_saving()
        return self.state


@pytest.fixture
def persistence(monkeypatch: pytest.MonkeyPatch) -> Any:
    from ministack.core import persistence

    for name in ("_json_default", "_json_object_hook", "STATE_DIR", "PERSIST_STATE"):
        monkeypatch.setattr(persistence, name, getattr(persistence, name))
    persistence.PERSIST_STATE = True
    return persistence


@pytest.fixture
def server(tmp_path: Path, persistence: Any) -> Server:
    return Server(tmp_path, persistence)


def saved(persistence: Any) -> list[Any]:
    return [persistence.load_state(name) for name in ("eventbridge", "cloudformation")]


def test_a_stop_during_a_snapshot_saves_all_services(
    server: Server, tmp_path: Path, persistence: Any
) -> None:
    """Both used to write at once, and the child removed the directory that the server was still writing."""
    server.before_saving = lambda: time.sleep(SLOW_S)
    server.state = {"bus": "early"}
    thread = threading.Thread(target=server.snapshots.run, daemon=True)
    thread.start()
    wait_until(lambda: list(tmp_path.glob("snapshot-*/eventbridge.json")), "no snapshot begins", every_s=0.02)

    began = time.monotonic()
    server.before_saving = lambda: None
    server.state = {"bus": "late", "code": BLOB}
    server.snapshots.save_last()

    thread.join()
    assert time.monotonic() - began < SLOW_S / 2
    assert saved(persistence) == [{"bus": "late", "code": BLOB}] * 2
    assert [path for path in tmp_path.glob("snapshot-*") if path.is_dir()] == [
        tmp_path / server.snapshots.current.readlink()
    ]


def test_a_snapshot_that_outlives_its_server_is_awaited(tmp_path: Path, persistence: Any) -> None:
    """A child of a killed server may still switch `current`, and remove what the next server loads."""
    killed = Server(tmp_path, persistence)
    killed.state = {"bus": "of the killed server"}
    killed.before_saving = lambda: time.sleep(2)
    orphan = os.fork()
    if orphan == 0:
        killed.snapshots._save_and_exit()
    wait_until(lambda: list(tmp_path.glob("snapshot-*/eventbridge.json")), "no snapshot begins", every_s=0.02)

    following = Server(tmp_path, persistence)
    with following.snapshots.exclusively():
        assert saved(persistence) == [{"bus": "of the killed server"}] * 2
    assert os.waitpid(orphan, 0) == (orphan, 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_killed_snapshot_leaves_the_snapshot_before_it(
    server: Server, tmp_path: Path, persistence: Any, number: signal.Signals
) -> None:
    server.state = {"bus": "whole", "code": BLOB}
    server.snapshots.save()
    server.state = {"bus": "half"}
    server.before_saving = lambda: time.sleep(SLOW_S)
    child = os.fork()
    if child == 0:
        server.snapshots._save_and_exit()
    wait_until(lambda: len(list(tmp_path.glob("snapshot-*/eventbridge.json"))) == 2, "no snapshot begins")
    os.kill(child, number)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -number
    assert saved(persistence) == [{"bus": "whole", "code": BLOB}] * 2


def test_a_service_that_cannot_be_saved_fails_the_snapshot(server: Server, persistence: Any) -> None:
    """ministack would leave the service out, and the next server would start without it."""
    server.state = {"bus": "whole"}
    server.snapshots.save()
    server.state = {"bus": object()}
    with pytest.raises(OSError, match="the state of eventbridge was not written"):
        server.snapshots.save()
    assert saved(persistence) == [{"bus": "whole"}] * 2


def test_blobs_of_the_current_snapshot_alone_are_kept(server: Server, tmp_path: Path) -> None:
    for code in (BLOB, BLOB + b"2"):
        server.state = {"code": code}
        server.snapshots.save()
    assert [path.read_bytes() for path in tmp_path.glob("blobs/*")] == [BLOB + b"2"]


def test_the_addresses_of_a_state_follow_the_port(tmp_path: Path, persistence: Any) -> None:
    first = Server(tmp_path, persistence, 4566)
    queue, neighbour = "http://127.0.0.1:{}/000000000000/executions", "http://127.0.0.1:45661/"
    first.state = {"queue": queue.format(4566), "target": neighbour}
    first.snapshots.save()

    moved = Server(tmp_path, persistence, 4999)
    moved.snapshots.follow_port()
    assert saved(persistence) == [{"queue": queue.format(4999), "target": neighbour}] * 2
    assert json.loads((tmp_path / "current" / "snapshot.json").read_text()) == {"port": 4999}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("CREATE_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"),
        ("UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"),
        ("UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"),
        ("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"),
        ("UPDATE_ROLLBACK_FAILED", "UPDATE_ROLLBACK_COMPLETE"),
        ("ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE"),
        ("DELETE_IN_PROGRESS", "DELETE_FAILED"),
        ("UPDATE_COMPLETE", "UPDATE_COMPLETE"),
    ],
)
def test_an_interrupted_operation_ends_deployable_or_deletable(status: str, expected: str) -> None:
    stack = {"StackName": "minute8-local", "StackStatus": status}
    cloudformation.end_interrupted_operations(SimpleNamespace(_data={"minute8-local": stack}))
    assert stack["StackStatus"] == expected
