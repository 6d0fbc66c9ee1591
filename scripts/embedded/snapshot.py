"""Snapshots of the embedded AWS, so that a killed process loses at most the last few seconds.

ministack itself saves once, at a clean stop, file by file. Here a forked child writes the state every few seconds: the
fork sees all services at one instant, and the server continues. A snapshot has its own directory, and one rename makes
it the current one, so a kill at any time leaves a complete snapshot.
"""

import gc
import hashlib
import logging
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

logger = logging.getLogger("embedded.snapshot")

# Between the end of one snapshot and the start of the next; or four times its duration, if that is longer.
INTERVAL_S = 2.0
# A child that takes longer counts as stuck (another thread held a lock at the fork) and is killed.
_TIMEOUT_S = 60.0
# Larger byte strings (a layer's archive) are written once, each to its own file, and not into every snapshot.
_BLOB_BYTES = 64_000
# The state of a stack whose operation was interrupted; the next deployment continues from the existing resources.
_AFTER_INTERRUPTION = {
    "CREATE_IN_PROGRESS": "UPDATE_ROLLBACK_COMPLETE",
    "UPDATE_IN_PROGRESS": "UPDATE_ROLLBACK_COMPLETE",
    "UPDATE_ROLLBACK_IN_PROGRESS": "UPDATE_ROLLBACK_COMPLETE",
    "ROLLBACK_IN_PROGRESS": "ROLLBACK_COMPLETE",
    "DELETE_IN_PROGRESS": "DELETE_FAILED",
}


def install(app: Any, directory: Path) -> None:
    """Make ministack load from, and save to, snapshots in `directory`, and start taking them.

    `app` is the module ministack.app, before its server starts.
    """
    from ministack.core import persistence  # type: ignore[import-untyped]

    directory.mkdir(parents=True, exist_ok=True)
    snapshots = _Snapshots(app, persistence, app.save_all, directory)
    load = app._load_persisted_state

    def load_then_snapshot() -> None:
        # Not earlier: a snapshot of a server that has not loaded yet would overwrite everything.
        load()
        _end_interrupted_operations()
        threading.Thread(target=snapshots.run, daemon=True, name="snapshots").start()

    snapshots.install_blobs()
    persistence.STATE_DIR = str(snapshots.current)
    app._load_persisted_state = load_then_snapshot
    app.save_all = lambda _services: snapshots.save()


def _end_interrupted_operations() -> None:
    """Mark the stacks that were being deployed when the server ended: no process continues that work.

    CloudFormation refuses each deployment to a stack in progress, so `make up` would fail until `make reset`.
    """
    if (cloudformation := sys.modules.get("ministack.services.cloudformation")) is None:
        return  # loaded later together with its state
    for stack in cloudformation._stacks._data.values():
        if ended := _AFTER_INTERRUPTION.get(stack["StackStatus"]):
            logger.warning("stack %s was %s when the server ended", stack["StackName"], stack["StackStatus"])
            stack["StackStatus"] = ended


class _Snapshots:
    """Writes the whole state of `app` into numbered directories; `current` links to the newest whole one."""

    def __init__(self, app: Any, persistence: Any, save_all: Any, directory: Path) -> None:
        self.current = directory / "current"
        self._app = app
        self._persistence = persistence
        self._save_all = save_all
        self._directory = directory
        self._blobs = directory / "blobs"
        self._written_blobs: set[str] = set()

    def install_blobs(self) -> None:
        """Make ministack's JSON keep large byte strings in files named by their hash."""
        encode, decode = self._persistence._json_default, self._persistence._json_object_hook

        def encode_blob(value: object) -> object:
            if not isinstance(value, bytes) or len(value) < _BLOB_BYTES:
                return encode(value)
            name = hashlib.sha256(value).hexdigest()
            self._written_blobs.add(name)
            path = self._blobs / name
            if not path.exists():
                self._blobs.mkdir(exist_ok=True)
                fresh = path.with_suffix(f".{os.getpid()}")
                fresh.write_bytes(value)
                fresh.replace(path)
            return {"__blob__": name}

        def decode_blob(value: dict[str, Any]) -> object:
            return (self._blobs / value["__blob__"]).read_bytes() if "__blob__" in value else decode(value)

        self._persistence._json_default = encode_blob
        self._persistence._json_object_hook = decode_blob

    def run(self) -> None:
        while True:
            began = time.monotonic()
            self._fork_and_wait()
            time.sleep(max(INTERVAL_S, 4 * (time.monotonic() - began)))

    def _fork_and_wait(self) -> None:
        child = os.fork()
        if child == 0:
            self._save_in_child()
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.02)
        if status:
            logger.warning("snapshot failed with wait status %s; the next one is tried as usual", status)

    def _save_in_child(self) -> None:
        """Save and end this forked process without the parent's clean-up handlers."""
        code = 1
        try:
            gc.disable()  # a collection would touch, and so copy, every shared page
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            self.save()
            code = 0
        finally:
            os._exit(code)

    def save(self) -> None:
        """Write one snapshot and make it the current one."""
        fresh = self._directory / f"snapshot-{time.time_ns()}-{os.getpid()}"
        fresh.mkdir()
        self._persistence.STATE_DIR = str(fresh)
        self._written_blobs.clear()
        try:
            self._save_all(self._app._build_persistence_save_dict())
        finally:
            self._persistence.STATE_DIR = str(self.current)
        link = fresh.with_suffix(".link")
        link.symlink_to(fresh.name)
        link.replace(self.current)
        self._forget_all_but(fresh)

    def _forget_all_but(self, snapshot: Path) -> None:
        for old in self._directory.glob("snapshot-*"):
            if old != snapshot:
                shutil.rmtree(old, ignore_errors=True)
        for blob in self._blobs.glob("*"):
            if blob.name not in self._written_blobs:
                blob.unlink(missing_ok=True)
