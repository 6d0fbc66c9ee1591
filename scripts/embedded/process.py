"""Start, find, stop and kill an embedded AWS. One state directory holds one instance; several can run."""

import contextlib
import fcntl
import json
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from scripts.one_at_a_time import one_at_a_time

ROOT = Path(__file__).resolve().parent.parent.parent
DEFAULT_STATE_DIR = ROOT / ".minute8"
DEFAULT_PORT = 4566
REGION = "us-east-1"
ACCOUNT = "000000000000"

# Linux gives clients 32,768 and above, macOS 49,152 and above.
_PORTS = range(20_000, 32_000)
MAX_STARTS = 3
_READY_TIMEOUT_S = 120.0
# A large state is saved, and up to two stuck attempts before that.
_STOP_TIMEOUT_S = 200.0

# Where botocore, Node and httpx look for the authorities to trust.
_CA_VARIABLES = ("AWS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE")

# The servers that this process has started, by pid: it must wait for them when they end.
_children: dict[int, "subprocess.Popen[bytes]"] = {}


class EmbeddedError(RuntimeError):
    """The embedded AWS could not be started or deployed to; the message says why and where to look."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """A running embedded AWS, as recorded in <state_dir>/embedded.json."""

    state_dir: str
    pid: int
    port: int
    auth: bool
    endpoint_url: str
    # The stage deployed last; empty before the first deployment.
    api_url: str = ""
    strict: bool = False
    # The authorities to trust, if its endpoints speak TLS.
    ca_bundle: str = ""

    def env(self) -> dict[str, str]:
        """Return the environment variables that make any AWS client talk to this instance."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            **dict.fromkeys(_CA_VARIABLES if self.ca_bundle else (), self.ca_bundle),
        }


def start(
    state_dir: Path = DEFAULT_STATE_DIR,
    port: int | None = None,
    *,
    auth: bool = False,
    tied: bool = False,
    strict: bool = False,
    shares: bool = False,
    tls: bool = False,
    concurrency: int | None = None,
) -> Embedded:
    """Start an embedded AWS on `state_dir` and wait until it is ready, or return the one that runs there.

    `port` is a preference: a taken port is replaced by a free one, and the state follows. Without it (None, or 0) the
    port of the last start is preferred; before the first start, None prefers DEFAULT_PORT and 0 any free port. `auth`
    enforces IAM. `tied` ends the instance together with the calling process. `strict` enforces IAM and adds AWS's rules
    that the server lacks; with `shares` functions also get the processor share of their memory. `concurrency` is the
    account's; None: 1,000, or what memory allows. With `tls` every endpoint speaks TLS, by a certificate that clients
    trust through `env()`.
    Raises EmbeddedError if it does not come up.
    """
    strict = strict or shares
    flags = {"--tied-to-parent": tied, "--strict": strict, "--shares": shares}
    state_dir = state_dir.resolve()
    state_dir.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(state_dir / "starting.lock"):
        if running := find(state_dir):
            return running
        before = _read_record(state_dir)
        wish = port or (before.port if before else DEFAULT_PORT if port is None else 0)
        _kill_leftovers(state_dir)
        shutil.rmtree(state_dir / "tmp", ignore_errors=True)
        for _ in range(MAX_STARTS):
            environment = _server_environment(state_dir, free_port(wish), auth or strict, concurrency)
            if tls:
                environment |= _tls_environment(state_dir)
            embedded = _spawn(state_dir, environment, [flag for flag, is_on in flags.items() if is_on])
            if _wait_until_ready(embedded):
                return embedded
    log = state_dir / "embedded.log"
    raise EmbeddedError(f"the embedded AWS did not start; its last words in {log}:\n{_log_tail(log)}")


def find(state_dir: Path = DEFAULT_STATE_DIR) -> Embedded | None:
    """Return the instance that runs on `state_dir`, or None, also if the record is stale."""
    state_dir = state_dir.resolve()
    embedded = _read_record(state_dir)
    return embedded if embedded and _is_locked(state_dir) and _answers(embedded) else None


def record(embedded: Embedded) -> None:
    """Write the instance's record in one step, so that a reader never sees half of it."""
    path = Path(embedded.state_dir) / "embedded.json"
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps(asdict(embedded), indent=2) + "\n")
    fresh.replace(path)


def stop(state_dir: Path = DEFAULT_STATE_DIR) -> bool:
    """Stop the instance on `state_dir` cleanly: its state is saved. Returns whether one was running."""
    state_dir = state_dir.resolve()
    if not state_dir.exists():
        return False
    with one_at_a_time(state_dir / "starting.lock"):
        was_running = _is_locked(state_dir)
        _signal_each(_servers(state_dir), signal.SIGTERM)
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while _is_locked(state_dir) and time.monotonic() < deadline:
            time.sleep(0.05)
        kill(state_dir)
    return was_running


def kill(state_dir: Path = DEFAULT_STATE_DIR) -> None:
    """End the instance and all of its Lambda processes at once, as a power cut would."""
    state_dir = state_dir.resolve()
    _kill_leftovers(state_dir)
    while _is_locked(state_dir):
        time.sleep(0.02)


def free_port(wish: int) -> int:
    """Return `wish` if nothing listens there, else (or for 0) a port that is free now. Raises EmbeddedError.

    Systems give no such port to clients, so no client can take it while the server starts.
    """
    wishes = [wish] if wish else []
    for port in (*wishes, *random.SystemRandom().sample(_PORTS, 100)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port
    raise EmbeddedError(f"no port is free among a hundred of {_PORTS.start} to {_PORTS.stop - 1}")


def _spawn(state_dir: Path, environment: Mapping[str, str], flags: Sequence[str]) -> Embedded:
    """Start a server process and record it."""
    (state_dir / "tmp").mkdir(exist_ok=True)
    command = [sys.executable, "-m", "scripts.embedded.server", "--state-dir", str(state_dir), *flags]
    with (state_dir / "embedded.log").open("ab") as log:
        server = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # its own process group: Ctrl-C here does not reach it, and kill() ends all of it
        )
    _children[server.pid] = server
    port = int(environment["GATEWAY_PORT"])
    embedded = Embedded(
        state_dir=str(state_dir),
        pid=server.pid,
        port=port,
        auth=environment["AUTH"] == "true",
        endpoint_url=f"{'https' if 'USE_SSL' in environment else 'http'}://127.0.0.1:{port}",
        strict="--strict" in flags,
        ca_bundle=environment.get("AWS_CA_BUNDLE", ""),
    )
    record(embedded)
    return embedded


def _server_environment(state_dir: Path, port: int, auth: bool, concurrency: int | None) -> dict[str, str]:
    """Return the server's whole environment. Each Lambda inherits it, so nothing of the developer's is in it."""
    return {
        "PATH": os.defpath,
        "HOME": str(state_dir / "tmp"),
        "TMPDIR": str(state_dir / "tmp"),
        "TZ": "UTC",
        "LANG": "C.UTF-8",
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "LOG_LEVEL": "WARNING",
        "AUTH": "true" if auth else "false",
        "PERSIST_STATE": "1",
        "STATE_DIR": str(state_dir / "aws"),
        "S3_PERSIST": "1",
        "S3_DATA_DIR": str(state_dir / "s3"),
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        **({"LAMBDA_ACCOUNT_CONCURRENCY": str(concurrency)} if concurrency else {}),
    }


def _tls_environment(state_dir: Path) -> dict[str, str]:
    """What makes the server speak TLS, and its Lambdas trust it."""
    from scripts.embedded.strict import certificate

    directory = state_dir / "tls"
    directory.mkdir(exist_ok=True)
    bundle, server = certificate.write(directory)
    names = ("MINISTACK_SSL_CERT", "MINISTACK_SSL_KEY")
    return {"USE_SSL": "1", **dict.fromkeys(names, str(server)), "AWS_CA_BUNDLE": str(bundle)}


def _wait_until_ready(embedded: Embedded) -> bool:
    server = _children[embedded.pid]
    deadline = time.monotonic() + _READY_TIMEOUT_S
    while time.monotonic() < deadline:
        if _answers(embedded):
            return True
        if server.poll() is not None:
            return False
        time.sleep(0.05)
    os.killpg(server.pid, signal.SIGKILL)
    return False


def _answers(embedded: Embedded) -> bool:
    trusted = ssl.create_default_context(cafile=embedded.ca_bundle) if embedded.ca_bundle else None
    ready = f"{embedded.endpoint_url}/_ministack/ready"
    try:
        with urllib.request.urlopen(ready, timeout=30, context=trusted) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def _is_locked(state_dir: Path) -> bool:
    """Return whether a server holds the state directory's lock; unlike a pid, a lock cannot be stale."""
    path = state_dir / "embedded.lock"
    if not path.exists():
        return False
    with path.open("a") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        return False


def _read_record(state_dir: Path) -> Embedded | None:
    path = state_dir / "embedded.json"
    return Embedded(**json.loads(path.read_text())) if path.exists() else None


def _kill_leftovers(state_dir: Path) -> None:
    """Kill the process groups of the directory's servers, also of ended ones: Lambda workers, a snapshot."""
    recorded = _read_record(state_dir)
    groups = {*_servers(state_dir), *([recorded.pid] if recorded else [])}
    # Another program may have the recorded number by now; all our processes name the state directory.
    pids = [pid for pid, group, command in _processes() if group in groups and str(state_dir) in command]
    _signal_each(pids, signal.SIGKILL)
    for group in groups:
        if child := _children.pop(group, None):
            child.wait()


def _servers(state_dir: Path) -> list[int]:
    """The servers that run on the directory. A start that was cut off leaves one without a record."""
    command_line = f" scripts.embedded.server --state-dir {state_dir} "
    return [pid for pid, group, command in _processes() if pid == group and command_line in f"{command} "]


def _signal_each(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _processes() -> Iterator[tuple[int, int, str]]:
    """Yield (pid, process group, command line) of every process: from /proc, or from ps where there is none."""
    if not Path("/proc/self/cmdline").exists():
        listing = subprocess.run(
            ["ps", "-axo", "pid=,pgid=,args="], capture_output=True, text=True, check=True
        )
        for line in listing.stdout.splitlines():
            fields = line.split(None, 2)
            yield int(fields[0]), int(fields[1]), fields[2]
        return
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            pid = int(directory.name)
            yield pid, os.getpgid(pid), (directory / "cmdline").read_text().replace("\0", " ")


def _log_tail(log: Path, lines: int = 15) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else "(no log)"
