"""Build what serverless.yml packages: the layers, the compiled modules of the functions, and the console.

    python -m scripts.build_package arm64 jwtIssuer=off otlpEndpoint=off

The plugin deploy/build.js runs it before each packaging; the words are the parameters that decide about layers. What is
built and has not changed is not built again. Needs Python's standard library, pip and node_modules alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from scripts import build_layer, console


def main(arguments: Sequence[str] | None = None) -> int:
    """Build for the platform that the command line names; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m scripts.build_package", description=__doc__)
    parser.add_argument("platform", choices=build_layer.PLATFORMS)
    parser.add_argument("params", nargs="*", metavar="NAME=VALUE")
    options = parser.parse_args(arguments)
    params = dict(text.split("=", 1) for text in options.params)
    try:
        build(options.platform, build_layer.needed(params))
    except RuntimeError as error:
        print(f"build: {error}", file=sys.stderr)
        return 1
    return 0


def build(platform: str, layers: Sequence[str]) -> None:
    """Build all of it, and say so before each slow step. Raises RuntimeError with the output of what failed."""
    for name in layers:
        _say(f"the layer of {build_layer.LAYERS[name].name} for {platform}")
        build_layer.build(platform, name)
    build_layer.fill_in(build_layer.ROOT, platform)
    if platform != "local":
        _say("the functions' modules, compiled for Lambda's Python")
        build_layer.compile_code()
    _say("the console")
    console.build()


def _say(step: str) -> None:
    print(f"build: {step} …", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
