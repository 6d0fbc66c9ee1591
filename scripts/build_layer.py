"""Build the Lambda layers from requirements/lambda.txt, jwt.txt and otlp.txt, and compile the functions' own code.

    python -m scripts.build_layer local    # for the embedded AWS: this machine's interpreter
    python -m scripts.build_layer arm64    # for AWS: Lambda's platform, whatever machine this is

No layer contains boto3. Of botocore the layer has only the services that the functions call.
"""

import argparse
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from common.config import OFF
from scripts.one_at_a_time import one_at_a_time

ROOT = Path(__file__).resolve().parent.parent
# A layer's directory, without its platform, and its requirements.
LAYERS = {
    "layer": ROOT / "requirements/lambda.txt",
    "layer-jwt": ROOT / "requirements/jwt.txt",
    "layer-otlp": ROOT / "requirements/otlp.txt",
}
# The layers that functions have only with a parameter.
OPTIONAL_LAYERS = {"layer-jwt": "jwtIssuer", "layer-otlp": "otlpEndpoint"}

# What the functions call: their own tables, queue and bus, and targets.
SERVICES = {"cloudwatch", "dynamodb", "ecs", "events", "lambda", "s3", "sns", "sqs", "stepfunctions", "sts"}

# What Powertools' logger and metrics are made of. No function has its event handler.
_POWERTOOLS = {"exceptions", "logging", "metrics", "shared", "tracing", "utilities", "warnings"}

# CPython 3.13 as WebAssembly: its compiled modules are those of any platform.
_COMPILER = ROOT / "node_modules" / "pyodide"

# The functions' own code, as serverless.yml packages it.
_CODE = ("common", "scheduler", "executor", "minute8")

# Lambda's python3.13 on arm64 runs Amazon Linux 2023; manylinux2014 wheels fit it.
_PLATFORM_ARGUMENTS: dict[str, list[str]] = {
    "local": [],
    "arm64": [
        *("--platform", "manylinux2014_aarch64", "--platform", "manylinux_2_28_aarch64"),
        *("--only-binary", ":all:", "--implementation", "cp", "--python-version", "3.13"),
    ],
}

PLATFORMS = tuple(sorted(_PLATFORM_ARGUMENTS))


def platform_of(params: Mapping[str, str]) -> str:
    """That of a deployment with these parameters: an embedded AWS that stands in for an account is this machine."""
    return "local" if params.get("layerPath", "").endswith("-local") else "arm64"


def build_all(platform: str, names: Iterable[str] = LAYERS) -> list[Path]:
    """Build the layers of these names; return their paths. Raises RuntimeError with pip's output if pip fails."""
    return [build(platform, name)[0] for name in names]


def needed(params: Mapping[str, str]) -> list[str]:
    """The layers that functions of a deployment with these parameters have."""
    return [
        name
        for name in LAYERS
        if name not in OPTIONAL_LAYERS or params.get(OPTIONAL_LAYERS[name], OFF) != OFF
    ]


def fill_in(root: Path, platform: str) -> None:
    """serverless.yml packages every layer; one that no function has, and that was never built, may be empty."""
    for name in LAYERS:
        layer = root / "build" / f"{name}-{platform}"
        if not layer.exists():
            (layer / "python").mkdir(parents=True)
            (layer / "python" / "empty.txt").write_text("No function of this deployment has this layer.\n")


def build(platform: str, name: str, root: Path = ROOT) -> tuple[Path, bool]:
    """Build build/<name>-<platform> below `root` if its requirements have changed since the last build.

    Returns its path and whether it was built now. Raises RuntimeError with pip's output if pip fails.
    """
    layer = root / "build" / f"{name}-{platform}"
    with one_at_a_time(layer.with_suffix(".lock")):
        return layer, _build(layer, platform, LAYERS[name])


def compile_code(root: Path = ROOT) -> None:
    """Compile the functions' own code below `root` for AWS. Raises RuntimeError if a module is not compiled.

    Checked, since people change these files: Python ignores a compiled module whose source has another hash.
    """
    _compile("arm64", "checked-hash", [root / name for name in _CODE])


def _build(layer: Path, platform: str, requirements: Path) -> bool:
    stamp = layer / ".requirements"
    fingerprint = _fingerprint(platform, requirements)
    if stamp.exists() and stamp.read_text() == fingerprint:
        return False
    # Built in another directory and renamed, so that Ctrl-C never leaves half a layer.
    fresh = layer.with_name(f"{layer.name}.{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    _pip_install(platform, requirements, fresh / "python")
    _strip(fresh / "python")
    # Unchecked: nobody changes these files.
    _compile(platform, "unchecked-hash", [fresh / "python"])
    (fresh / ".requirements").write_text(fingerprint)
    shutil.rmtree(layer, ignore_errors=True)
    fresh.rename(layer)
    return True


def _fingerprint(platform: str, requirements: Path) -> str:
    """Return what a layer's content depends on: its requirements, this file and what compiles it."""
    interpreter = (
        f"{sys.implementation.cache_tag} {sys.platform}" if platform == "local" else _compiler_version()
    )
    services = " ".join(sorted(SERVICES))
    read = hashlib.sha256(requirements.read_bytes() + Path(__file__).read_bytes()).hexdigest()
    return f"{platform} {interpreter} {services} {read}"


def _pip_install(platform: str, requirements: Path, target: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += [
        "--no-compile",
        "--require-hashes",
        "--target",
        str(target),
        "-r",
        str(requirements),
        *_PLATFORM_ARGUMENTS[platform],
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(
            f"pip could not install {requirements.name} for {platform}:\n{done.stderr.strip()}"
        )


def _strip(packages: Path) -> None:
    """Remove what no function reads. Package metadata stays if a package looks up its own version."""
    for path in list(packages.rglob("*")):
        if path.is_dir() and path.name in {"__pycache__", "tests", "test"}:
            shutil.rmtree(path, ignore_errors=True)
    for metadata in packages.glob("*.dist-info"):
        for path in sorted(metadata.rglob("*"), reverse=True):
            if path.is_file() and path.name != "METADATA":
                path.unlink()
            elif path.is_dir():
                path.rmdir()
    for service in packages.glob("botocore/data/*/"):
        if service.is_dir() and service.name not in SERVICES:
            shutil.rmtree(service)
    _strip_powertools(packages / "aws_lambda_powertools")
    for hints in packages.glob("msgspec/_utils.py"):  # the layer of an option has none
        _use_typing(hints)
    _trim(packages / "botocore" / "data")
    shutil.rmtree(packages / "bin", ignore_errors=True)


def _strip_powertools(package: Path) -> None:
    utilities = package.glob("utilities/*/")
    parts = [part for part in package.glob("*/") if part.name not in _POWERTOOLS]
    for part in parts + [utility for utility in utilities if utility.name != "jmespath_utils"]:
        shutil.rmtree(part)


def _use_typing(hints: Path) -> None:
    """msgspec prefers typing_extensions, whose import takes longer than its own; typing has the same since 3.11."""
    hints.write_text(hints.read_text().replace("from typing_extensions import", "from typing import"))


def _trim(data: Path) -> None:
    """Remove what no client reads of botocore's data: each cold start reads these files whole."""
    prefixes = set()
    for path in data.glob("*/*/service-2.json.gz"):
        model = json.loads(gzip.decompress(path.read_bytes()), object_hook=_undocumented)
        for parameter in model.get("clientContextParams", {}).values():
            parameter["documentation"] = ""  # of S3; the only text that a client reads
        prefixes.add(model["metadata"]["endpointPrefix"])
        path.write_bytes(gzip.compress(json.dumps(model).encode(), mtime=0))
    for path in data.glob("endpoints.json"):
        endpoints = json.loads(path.read_text())
        for partition in endpoints["partitions"]:
            services = partition["services"]
            partition["services"] = {name: services[name] for name in sorted(services.keys() & prefixes)}
        path.write_text(json.dumps(endpoints))


def _undocumented(shape: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value for name, value in shape.items() if name != "documentation" or not isinstance(value, str)
    }


def _compile(platform: str, mode: str, folders: list[Path]) -> None:
    """Compile the modules: Lambda cannot store compiled modules, and compiling would take half of a cold start.

    By hashes, because unpacking changes the files' times. For AWS by a Python of Lambda's version, which `make install`
    brings, whatever Python this machine has. Raises RuntimeError if a module is not compiled.
    """
    if platform == "local":
        command = [sys.executable, "-m", "compileall", "-q", "-f", "--invalidation-mode", mode]
    else:
        _compiler_version()
        command = ["node", str(ROOT / "scripts" / "compile_for_lambda.mjs"), mode]
    try:
        done = subprocess.run([*command, *map(str, folders)], capture_output=True, text=True, check=False)
    except OSError as error:
        raise RuntimeError(f"the compiler of Python modules did not start: {error}") from error
    if done.returncode:
        raise RuntimeError(f"Python modules were not compiled:\n{done.stdout.strip()}{done.stderr.strip()}")


def _compiler_version() -> str:
    """What compiles for AWS. Raises RuntimeError if it is not installed."""
    try:
        return f"pyodide {json.loads((_COMPILER / 'package.json').read_text())['version']}"
    except FileNotFoundError as error:
        raise RuntimeError(
            "what compiles for Lambda's Python 3.13 is not installed: run `make install`"
        ) from error


def size_bytes(directory: Path) -> int:
    """Return the size of all files below `directory`, unpacked."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def main() -> int:
    """Build the layers for the platform named on the command line and print where they are."""
    parser = argparse.ArgumentParser(description="Build the Lambda layers")
    parser.add_argument("platform", choices=PLATFORMS)
    platform = parser.parse_args().platform
    for name in LAYERS:
        try:
            layer, built = build(platform, name)
        except RuntimeError as error:
            print(f"build_layer: {error}", file=sys.stderr)
            return 1
        unchanged = "" if built else " (unchanged)"
        print(f"{layer.relative_to(ROOT)}: {size_bytes(layer) / 1e6:.1f} MB{unchanged}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
