"""Snapshots of the embedded AWS, so that a killed process loses at most the last few seconds.

ministack itself saves once, at a clean stop, service by service. Here a forked child writes the state every few
seconds: the fork sees all services at one instant, and the server continues. A snapshot has its own directory, and one
rename makes it the current one, so a kill at any time leaves a complete snapshot.

The last snapshot of a stop is written in the same way, after the one under way has been killed. Whoever writes, reads
or removes snapshots holds the lock file: a child that has outlived its server cannot disturb the next server.
"""

import contextlib
import fcntl
import gc
import hashlib
import json
import logging
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

logger = logging.getLogger("embedded.snapshot")

# Between the end of one snapshot and the start of the next; or four times its duration, if that is longer.
INTERVAL_S = 2.0
# A child that takes longer counts as stuck (another thread held a lock at the fork) and is killed.
TIMEOUT_S = 60
# Of the snapshot that a stop waits for.
MAX_ATTEMPTS = 3
# Larger byte strings (a layer's archive) are written once, each to its own file, and not into every snapshot.
MIN_BLOB_BYTES = 64_000
# Written last into each snapshot.
_MANIFEST = "snapshot.json"


def install(app: Any, directory: Path, port: int, loaded: Callable[[], None]) -> None:
    """Make ministack load from, and save to, snapshots in `directory`, and start taking them.

    `app` is the module ministack.app, before its server starts. `loaded` is called with the state loaded and before the
    first snapshot.
    """
    from ministack.core import persistence  # type: ignore[import-untyped]

    directory.mkdir(parents=True, exist_ok=True)
    snapshots = Snapshots(app, persistence, directory, port)
    load = app._load_persisted_state

    def load_then_snapshot() -> None:
        # Not earlier: a snapshot of a server that has not loaded yet would overwrite everything.
        with snapshots.exclusively():
            snapshots.follow_port()
            load()
        loaded()
        threading.Thread(target=snapshots.run, daemon=True, name="snapshots").start()

    snapshots.install_blobs()
    persistence.STATE_DIR = str(snapshots.current)
    app._load_persisted_state = load_then_snapshot
    app.save_all = lambda _services: snapshots.save_last()


class Snapshots:
    """Writes the whole state of `app` into numbered directories; `current` links to the newest whole one."""

    def __init__(self, app: Any, persistence: Any, directory: Path, port: int) -> None:
        self.current = directory / "current"
        self._app = app
        self._persistence = persistence
        self._directory = directory
        self._port = port
        self._blobs = directory / "blobs"
        self._written_blobs: set[str] = set()
        self._forking = threading.Lock()
        self._stopping = threading.Event()

    def install_blobs(self) -> None:
        """Make ministack's JSON keep large byte strings in files named by their hash."""
        encode, decode = self._persistence._json_default, self._persistence._json_object_hook

        def encode_blob(value: object) -> object:
            if not isinstance(value, bytes) or len(value) < MIN_BLOB_BYTES:
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
        """Take snapshots until save_last() takes over."""
        wait_s = 0.0
        while not self._stopping.wait(wait_s):
            began = time.monotonic()
            with self._forking:
                self._save_in_child(self._stopping.is_set)
            wait_s = max(INTERVAL_S, 4 * (time.monotonic() - began))

    def save_last(self) -> None:
        """End the snapshot under way, and write one of the present state. If all attempts fail, the last one stays."""
        self._stopping.set()
        with self._forking:
            if not any(self._save_in_child(lambda: False) for _ in range(MAX_ATTEMPTS)):
                logger.error("the last snapshot failed: what the final seconds changed is lost")

    def _save_in_child(self, cancelled: Callable[[], bool]) -> bool:
        """Save in a forked child and wait for its end; a child that is stuck or `cancelled` is killed."""
        child = os.fork()
        if child == 0:
            self._save_and_exit()
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > deadline or cancelled():
                os.kill(child, signal.SIGKILL)
            time.sleep(0.02)
        if status and not cancelled():
            logger.warning("snapshot failed with wait status %s; the next one is tried as usual", status)
        return not status

    def _save_and_exit(self) -> None:
        """Save and end this forked process without the parent's clean-up handlers."""
        code = 1
        try:
            gc.disable()  # a collection would touch, and so copy, every shared page
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.alarm(TIMEOUT_S)  # ends it even if the server has been killed
            self.save()
            code = 0
        except Exception:
            logger.exception("snapshot failed")
        finally:
            os._exit(code)

    def save(self) -> None:
        """Write one snapshot and make it the current one. Raises an exception if a service cannot be saved."""
        with self.exclusively():
            fresh = self._new_directory()
            self._written_blobs.clear()
            self._persistence.STATE_DIR = str(fresh)
            try:
                for name, read_state in self._app._build_persistence_save_dict().items():
                    state = read_state()
                    if state is None:
                        continue
                    self._persistence.save_state(name, state)
                    if not (fresh / f"{name}.json").exists():
                        raise OSError(f"the state of {name} was not written")
            finally:
                self._persistence.STATE_DIR = str(self.current)
            self._publish(fresh)
            self._forget_all_but(fresh)

    def follow_port(self) -> None:
        """Rewrite the addresses of a state that was saved on another port: queues' URLs contain the port."""
        manifest = self.current / _MANIFEST
        saved_port = json.loads(manifest.read_text())["port"] if manifest.exists() else self._port
        if saved_port == self._port:
            return
        logger.warning("the state was saved on port %s: its addresses become port %s", saved_port, self._port)
        old_address = re.compile(rf"127\.0\.0\.1:{saved_port}(?!\d)")
        fresh = self._new_directory()
        for saved in self.current.glob("*.json"):
            (fresh / saved.name).write_text(old_address.sub(f"127.0.0.1:{self._port}", saved.read_text()))
        self._publish(fresh)

    @contextlib.contextmanager
    def exclusively(self) -> Iterator[None]:
        """Hold the directory's lock, which ends with the process that holds it."""
        with (self._directory / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _new_directory(self) -> Path:
        fresh = self._directory / f"snapshot-{time.time_ns()}-{os.getpid()}"
        fresh.mkdir()
        return fresh

    def _publish(self, fresh: Path) -> None:
        (fresh / _MANIFEST).write_text(json.dumps({"port": self._port}))
        link = fresh.with_suffix(".link")
        link.symlink_to(fresh.name)
        link.replace(self.current)

    def _forget_all_but(self, snapshot: Path) -> None:
        for old in self._directory.glob("snapshot-*"):
            if old == snapshot:
                continue
            if old.is_symlink():
                old.unlink()
            else:
                shutil.rmtree(old, ignore_errors=True)
        for blob in self._blobs.glob("*"):
            if blob.name not in self._written_blobs:
                blob.unlink(missing_ok=True)
