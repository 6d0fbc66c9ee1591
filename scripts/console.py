"""Build the console and the TypeScript client's types: `python -m scripts.console [build|types]`.

The console goes to minute8/api/console_files and so into the API's package. It is built only if its sources have
changed. The types are made of the OpenAPI document. Neither is committed.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from scripts.one_at_a_time import one_at_a_time

ROOT: Final = Path(__file__).resolve().parents[1]
OUTPUT: Final = ROOT / "minute8" / "api" / "console_files"
TYPES: Final = ROOT / "clients" / "typescript" / "src" / "api.ts"
_TOOLS: Final = ROOT / "node_modules" / ".bin"
_STAMP: Final = ".sources"
_SOURCES: Final = ("console/src", "clients/typescript/src")
_SINGLE: Final = ("console/index.html", "console/vite.config.ts", "console/package.json", "package-lock.json")
# Files that are compressed already.
_AS_THEY_ARE: Final = (".png", ".woff2", ".gz")


def build() -> Path:
    """Build the console if its sources have changed, each file compressed; return its directory.

    Raises RuntimeError with the tool's output.
    """
    with one_at_a_time(ROOT / "build" / "console.lock"):
        return _built(_fingerprint())


def build_to(directory: Path, sources: Path = ROOT / "console") -> Path:
    """Build the console of these sources, uncompressed; return the directory. Raises RuntimeError."""
    options = ("--logLevel", "error", "--outDir", str(directory), "--emptyOutDir")
    _run("vite", "build", *options, cwd=sources)
    return directory


def _built(fingerprint: str) -> Path:
    stamp = OUTPUT / _STAMP
    if stamp.exists() and stamp.read_text() == fingerprint:
        return OUTPUT
    # Built in another directory and renamed, so that Ctrl-C never leaves half a console.
    fresh = build_to(ROOT / "build" / f"console.{os.getpid()}")
    for path in [path for path in fresh.rglob("*") if path.is_file() and path.suffix not in _AS_THEY_ARE]:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
        path.unlink()
    (fresh / _STAMP).write_text(fingerprint)
    shutil.rmtree(OUTPUT, ignore_errors=True)
    fresh.rename(OUTPUT)
    return OUTPUT


def types() -> bool:
    """Write the client's types if the OpenAPI document has changed; return whether they were written.

    Refusals are left out: each is a problem document, which the client throws. Raises RuntimeError.
    """
    from minute8.api.app import ROUTES
    from minute8.api.http.openapi import document

    text = json.dumps(_without_refusals(document(ROUTES)), indent=1)
    document_file = ROOT / "build" / "openapi.json"
    if document_file.exists() and TYPES.exists() and document_file.read_text() == text:
        return False
    document_file.parent.mkdir(exist_ok=True)
    document_file.write_text(text)
    # A field with a default need not be sent.
    options = ("--alphabetize", "--root-types=false", "--default-non-nullable=false")
    _run("openapi-typescript", str(document_file), "-o", str(TYPES), *options, cwd=ROOT)
    return True


def _without_refusals(document: dict[str, Any]) -> dict[str, Any]:
    for operations in document["paths"].values():
        for operation in operations.values():
            operation["responses"] = {
                status: answer for status, answer in operation["responses"].items() if status.startswith("2")
            }
    return document


def _fingerprint() -> str:
    """A hash of all that the console is made of."""
    digest = hashlib.sha256()
    for path in _sources():
        digest.update(f"\n{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _sources() -> Iterable[Path]:
    files = [path for name in _SOURCES for path in (ROOT / name).rglob("*") if path.is_file()]
    return sorted(path for path in [*files, *(ROOT / name for name in _SINGLE)] if path != TYPES)


def _run(tool: str, *arguments: str, cwd: Path) -> None:
    if not (_TOOLS / tool).exists():
        raise RuntimeError(f"{tool} is not installed: run `make install` (or `npm ci`)")
    done = subprocess.run(
        [str(_TOOLS / tool), *arguments],
        cwd=cwd,
        # A test runner's own NODE_ENV would make a build for development, with the sources' paths in it.
        env=os.environ | {"NODE_ENV": "production"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{tool} failed:\n{done.stdout}{done.stderr}")


def main() -> int:
    """Build what the command line names; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m scripts.console", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("build", "types"), default="build")
    try:
        if parser.parse_args().what == "types":
            types()
        else:
            print(build().relative_to(ROOT))
    except RuntimeError as error:
        print(f"console: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
