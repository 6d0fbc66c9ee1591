"""The embedded AWS from a command line: python -m scripts.embedded up|start|deploy|sample|status|stop|reset."""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from scripts import parameters
from scripts.embedded import (
    DEFAULT_PORT,
    DEFAULT_STATE_DIR,
    Embedded,
    EmbeddedError,
    deploy,
    deployment,
    find,
    first_steps,
    start,
    stop,
)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = _parse(arguments)
    try:
        return _COMMANDS[options.command](options)
    except EmbeddedError as error:
        print(f"embedded AWS: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.embedded", description=__doc__)
    parser.add_argument("command", choices=_COMMANDS)
    parser.add_argument("--state-dir", type=Path, default=DEFAULT_STATE_DIR)
    parser.add_argument(
        "--port", type=int, help=f"default: as last time, {DEFAULT_PORT} at first; 0: any free one at first"
    )
    parser.add_argument("--stage", default="local")
    parser.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE", help="of deploy/parameters.yml"
    )
    parser.add_argument(
        "--forget", action="store_true", help="deploy without the parameters of earlier times"
    )
    parser.add_argument("--auth", action="store_true", help="enforce IAM as AWS does")
    parser.add_argument(
        "--strict", action="store_true", help="AWS's rules that it lacks, and --auth; or MINUTE8_STRICT=1"
    )
    parser.add_argument(
        "--shares", action="store_true", help="--strict, and each function its share of a processor"
    )
    parser.add_argument("--force", action="store_true", help="deploy even if nothing has changed")
    options = parser.parse_args(arguments)
    try:
        _named_params(options)
    except ValueError as error:
        parser.error(str(error))
    return options


def _up(options: argparse.Namespace) -> int:
    with ThreadPoolExecutor() as pool:
        built = pool.submit(deployment.build, _params(options))
        failed = _start(options)
        built.result()
    failed = failed or _deploy(options)
    if not failed:
        environment = first_steps.write_environment(_running(options), options.stage)
        print(f"\nFor this shell:   . {_short(environment)}\nA first target:   make sample")
        print(
            f"The console:      {_running(options).api_url}/console (its key is MINUTE8_KEY of that file)\n"
        )
    return failed


def _sample(options: argparse.Namespace) -> int:
    arn = first_steps.allow_sample_target(_running(options), options.stage)
    print(f"sample: the tenant {first_steps.TENANT!r} may call {arn}\n")
    print(f"A first job:   minute8 jobs create hello --every 1m --target {arn}\n")
    return 0


def _running(options: argparse.Namespace) -> Embedded:
    if embedded := find(options.state_dir):
        return embedded
    raise EmbeddedError("not running: start it with `make up`")


def _short(path: Path) -> str:
    """The command as a person would type it here."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _start(options: argparse.Namespace) -> int:
    began = time.monotonic()
    running = find(options.state_dir)
    strict = options.strict or bool(os.environ.get("MINUTE8_STRICT"))
    embedded = start(options.state_dir, options.port, auth=options.auth, strict=strict, shares=options.shares)
    if running:
        print(f"embedded AWS: runs on {embedded.endpoint_url} already (pid {embedded.pid})")
        return 0
    if options.port not in (0, None, embedded.port):
        print(f"embedded AWS: port {options.port} is taken, so it uses {embedded.port}")
    print(
        f"embedded AWS: up on {embedded.endpoint_url} after {time.monotonic() - began:.1f} s (pid {embedded.pid})"
    )
    return 0


def _deploy(options: argparse.Namespace) -> int:
    embedded = _running(options)
    began = time.monotonic()
    params = _params(options)
    if kept := params.keys() - _named_params(options).keys():
        _say(
            f"as before: {', '.join(parameters.pairs({name: params[name] for name in kept}))}; --forget ends that"
        )
    embedded = deploy(embedded, stage=options.stage, params=params, force=options.force, report=_say)
    _kept_params(options).write_text(json.dumps(params))
    _say(f"ready after {time.monotonic() - began:.1f} s; the API is {embedded.api_url}")
    return 0


def _params(options: argparse.Namespace) -> dict[str, str]:
    """The parameters of the last deployment, and in front of them those of the command line."""
    file = _kept_params(options)
    kept = json.loads(file.read_text()) if file.exists() and not options.forget else {}
    return {**kept, **_named_params(options)}


def _named_params(options: argparse.Namespace) -> dict[str, str]:
    return parameters.given_in([f"--param={param}" for param in options.param])


def _kept_params(options: argparse.Namespace) -> Path:
    return Path(options.state_dir / f"params-{options.stage}.json")


def _say(text: str) -> None:
    print(f"embedded AWS: {text}", flush=True)


def _status(options: argparse.Namespace) -> int:
    embedded = find(options.state_dir)
    print(json.dumps(asdict(embedded), indent=2) if embedded else "embedded AWS: not running")
    return 0 if embedded else 3


def _stop(options: argparse.Namespace) -> int:
    stopped = stop(options.state_dir)
    print("embedded AWS: stopped; its state is kept" if stopped else "embedded AWS: was not running")
    return 0


def _reset(options: argparse.Namespace) -> int:
    stop(options.state_dir)
    # Delete only our own files: --state-dir may name a directory with other files.
    for name in ("aws", "s3", "tmp"):
        shutil.rmtree(options.state_dir / name, ignore_errors=True)
    for service in options.state_dir.glob("service-*"):
        shutil.rmtree(service, ignore_errors=True)
    for file in (
        *options.state_dir.glob("*.lock"),
        *options.state_dir.glob("params-*.json"),
        *(options.state_dir / name for name in ("embedded.json", "embedded.log", "env")),
    ):
        file.unlink(missing_ok=True)
    print("embedded AWS: wiped")
    return 0


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "up": _up,
    "start": _start,
    "deploy": _deploy,
    "sample": _sample,
    "status": _status,
    "stop": _stop,
    "reset": _reset,
}

if __name__ == "__main__":
    sys.exit(main())
