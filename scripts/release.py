"""Build a release: the template and the archives, for those who deploy without this checkout, Python or Node.

    make release                                         # build/release/minute8-<version>.zip
    make release ARGS='--param="jwtIssuer=https://…"'    # with other parameters than the defaults

What a deployment decides is a parameter of the template: the stage, where the archives are, and a few more. The other
parameters are those of `make release`. The README in the archive says how to deploy it.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from common.version import VERSION
from scripts import audit, build_layer, parameters, wheel
from scripts.benchmarks.__main__ import stale
from scripts.embedded import EmbeddedError
from scripts.package_for_aws import package

OUTPUT: Final = build_layer.ROOT / "build" / "release"
_README: Final = build_layer.ROOT / "deploy" / "release.md"
_STAGE: Final = "zzstagezz"
# Packaged with these values, which stand for parameters of the template wherever they are. deploy/numbers.js caps none.
_STAND_INS: Final = {
    "alarmTopicArn": "arn:aws:sns:us-east-1:123456789012:zzalarmtopiczz",
    "executorMemoryMb": "1933",
    "maximumConcurrency": "887",
    "logRetentionInDays": "3653",
}
# Outputs by which the tool finds its own last deployment.
_OF_THE_TOOL: Final = re.compile(r"LambdaLayer(Hash|S3Key)$|^ServerlessDeploymentBucketName$")
_BUCKET: Final = ("ServerlessDeploymentBucket", "ServerlessDeploymentBucketPolicy")


def main(arguments: list[str] | None = None) -> int:
    """Build the release; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m scripts.release", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    options, osls_options = parser.parse_known_args(arguments)
    del options
    if refusals := parameters.refusals("prod", osls_options):
        print("\n".join(f"release: {refusal}" for refusal in refusals), file=sys.stderr)
        return 2
    if old := stale():
        words = "the figures of the pages are of other code. Measure them anew: make bench NAMES=stale"
        print(f"release: {words} ({', '.join(old)})", file=sys.stderr)
        return 1
    try:
        archive = build(parameters.given_in(osls_options))
    except (EmbeddedError, RuntimeError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    print(f"{archive.relative_to(build_layer.ROOT)}: {archive.stat().st_size / 1e6:.1f} MB")
    return 0


def build(params: Mapping[str, str], output: Path = OUTPUT) -> Path:
    """Build the archive with these parameters; returns its path. Raises RuntimeError, EmbeddedError."""
    folder = output / f"minute8-{VERSION}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="minute8-release-") as directory:
        given_values = {**params, **_STAND_INS}
        files = package(_STAGE, Path(directory), parameters.arguments_of(given_values))
        packaged = json.loads((files / "cloudformation-template-update-stack.json").read_text())
        for path in files.glob("*.zip"):
            shutil.copy(path, folder)
    template = as_release(packaged, parameters.read("prod", params))
    (folder / "template.json").write_text(json.dumps(template, indent=1))
    (folder / "README.md").write_text(_README.read_text().replace("VERSION", VERSION))
    audit.write_bills_of_materials(folder)
    wheel.build(folder)
    archive = folder.with_suffix(folder.suffix + ".zip")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as content:
        for path in sorted(folder.iterdir()):
            content.write(path, f"{folder.name}/{path.name}")
    return archive


def as_release(packaged: Mapping[str, Any], params: Mapping[str, str]) -> dict[str, Any]:
    """The packaged template with parameters in place of the stage, the bucket and the stand-ins. Pure.

    `params` are all parameters of a deployment; their values are the defaults.
    """
    template = {**packaged, "Resources": dict(packaged["Resources"]), "Outputs": dict(packaged["Outputs"])}
    for name in _BUCKET:
        template["Resources"].pop(name, None)
    for name in packaged["Outputs"]:
        if _OF_THE_TOOL.search(name):
            del template["Outputs"][name]
    content: dict[str, Any] = _with_parameters(template)
    text = {"Type": "String"}
    content["Parameters"] = {
        "Stage": {**text, "AllowedPattern": "[a-z][a-z0-9-]{0,19}", "Description": "A part of every name"},
        "CodeBucket": {**text, "Description": "The bucket with the archives, in the stack's region"},
        "CodePrefix": {**text, "Default": f"minute8-{VERSION}/", "Description": "Before the archives' names"},
        **{
            _name(name): {**text, "Default": params[name], "Description": "docs/deploying.md#parameters"}
            for name in _STAND_INS
        },
    }
    # Other parameters are another deployment, so CloudFormation publishes versions with them.
    digest = packaged["Outputs"]["Deployment"]["Value"]
    deployment = {"Fn::Sub": f"{digest}-${{ExecutorMemoryMb}}-${{MaximumConcurrency}}"}
    text_of_it = json.dumps(content).replace(json.dumps(digest), json.dumps(deployment))
    released: dict[str, Any] = json.loads(text_of_it)
    return released


def _name(parameter: str) -> str:
    """The template's parameter for one of the deployment's."""
    return parameter[0].upper() + parameter[1:]


def _with_parameters(value: Any) -> Any:
    match value:
        case {"S3Bucket": _, "S3Key": str(key), **more}:
            archive = {"Fn::Sub": f"${{CodePrefix}}{key.rpartition('/')[2]}"}
            return {"S3Bucket": {"Ref": "CodeBucket"}, "S3Key": archive, **more}
        case {"Fn::Sub": str(text)}:
            return {"Fn::Sub": _substituted(text)}
        case {"Fn::Sub": [str(text), dict(variables)]}:
            return {"Fn::Sub": [_substituted(text), _with_parameters(variables)]}
        case dict():
            return {key: _with_parameters(part) for key, part in value.items()}
        case list():
            return [_with_parameters(part) for part in value]
        case bool():
            return value
        case str() | int():
            return _referring(value)
    return value


def _referring(value: str | int) -> Any:
    """A reference to the parameter that the value stands for, or that is in it; else the value."""
    for name, stand_in in _STAND_INS.items():
        if str(value) == stand_in:
            return {"Ref": _name(name)}
    if isinstance(value, int) or _STAGE not in value:
        return value
    if value == _STAGE:
        return {"Ref": "Stage"}
    return {"Fn::Sub": _substituted(re.sub(r"\$\{(?!!)", "${!", value))}


def _substituted(text: str) -> str:
    for name, stand_in in _STAND_INS.items():
        if not stand_in.isdecimal():
            text = text.replace(stand_in, f"${{{_name(name)}}}")
    return text.replace(_STAGE, "${Stage}")


if __name__ == "__main__":
    sys.exit(main())
