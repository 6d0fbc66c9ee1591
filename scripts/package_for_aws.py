"""Build what `serverless deploy` would upload to AWS, and print its sizes. Needs no account.

The tool asks CloudFormation for the stack's last layer while it packages. A temporary embedded AWS answers "no such
stack", as before a first deployment.
"""

import argparse
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from scripts import build_layer, parameters
from scripts.embedded import EmbeddedError, start, stop
from scripts.embedded.deployment import run_osls, stage_service

OUTPUT = build_layer.ROOT / "build" / "package"


def main(arguments: list[str] | None = None) -> int:
    """Package the stage named on the command line into build/package/<stage>; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stage", default="dev")
    parser.add_argument("--aws-profile", help="not used: no account is needed")
    options, osls_options = parser.parse_known_args(arguments)
    stage = options.stage
    if refusals := parameters.refusals(stage, osls_options):
        print("\n".join(f"package: {refusal}" for refusal in refusals), file=sys.stderr)
        return 2
    try:
        package(stage, OUTPUT / stage, osls_options)
    except (EmbeddedError, RuntimeError) as error:
        print(f"package: {error}", file=sys.stderr)
        return 1
    for archive in sorted((OUTPUT / stage / ".serverless").glob("*.zip")):
        print(f"{archive.relative_to(build_layer.ROOT)}: {_sizes(archive)}")
    return 0


def package(stage: str, service: Path, osls_options: Sequence[str] = ()) -> Path:
    """Package `stage` in the directory `service`; return the directory of the archives and templates."""
    layers = build_layer.build_all(build_layer.platform_of(parameters.given_in(osls_options)))
    stage_service(service, layers)
    build_layer.compile_code(service)
    with tempfile.TemporaryDirectory(prefix="minute8-package-") as directory:
        try:
            run_osls(
                ["package", "--stage", stage, *osls_options], service, start(Path(directory), 0, tied=True)
            )
        finally:
            stop(Path(directory))
    return service / ".serverless"


def _sizes(archive: Path) -> str:
    with zipfile.ZipFile(archive) as content:
        unpacked = sum(entry.file_size for entry in content.infolist())
    return f"{archive.stat().st_size / 1e6:.2f} MB, {unpacked / 1e6:.1f} MB unpacked"


if __name__ == "__main__":
    sys.exit(main())
