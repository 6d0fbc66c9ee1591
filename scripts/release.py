"""Build a release: the template and the archives, for those who deploy without this checkout, Python or Node.

    make release                                         # build/release/minute8-<version>.zip
    make release ARGS='--param="jwtIssuer=https://…"'    # with other parameters than the defaults

What a deployment decides is a parameter of the template: the stage, where the archives are, and each of
deploy/parameters.yml, with the values given here as defaults. What is `OfTheTool` there is decided here. The README in
the archive says how to deploy it.
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
# Packaged with this name, which stands for the parameter Stage in the names that the tool makes.
_STAGE: Final = "zzstagezz"
# The functions' code for spans is packaged only with a collector; whether one gets any is decided by the parameter.
_WITH_SPANS: Final = {"otlpEndpoint": "https://localhost"}
# A version of a function is new with each change of the parameters. Their values have no room in its description, of
# 256 characters: it has the number that AppConfig gives to a configuration with these values, which costs nothing.
_SETTINGS: Final = {
    "Settings": {
        "Type": "AWS::AppConfig::Application",
        "Properties": {"Name": {"Fn::Sub": "minute8-${Stage}"}},
    },
    "SettingsProfile": {
        "Type": "AWS::AppConfig::ConfigurationProfile",
        "Properties": {"ApplicationId": {"Ref": "Settings"}, "Name": "parameters", "LocationUri": "hosted"},
    },
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
        files = package(_STAGE, Path(directory), parameters.arguments_of({**params, **_WITH_SPANS}))
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
    """The packaged template with parameters in place of the stage and the bucket. Pure.

    `params` are all parameters of a deployment.
    """
    template = {**packaged, "Resources": dict(packaged["Resources"]), "Outputs": dict(packaged["Outputs"])}
    for name in _BUCKET:
        template["Resources"].pop(name, None)
    for name in packaged["Outputs"]:
        if _OF_THE_TOOL.search(name):
            del template["Outputs"][name]
    content: dict[str, Any] = _with_parameters(template)
    text = {"Type": "String"}
    declared = {**packaged["Parameters"]}
    for name in _WITH_SPANS:
        declared[name] = {**declared[name], "Default": params[name]}
    # Other parameters are another deployment, so CloudFormation publishes versions with them.
    digest = packaged["Outputs"]["Deployment"]["Value"]
    deployment = {"Fn::Sub": f"{digest}-${{SettingsVersion}}"}
    released: dict[str, Any] = json.loads(
        json.dumps(content).replace(json.dumps(digest), json.dumps(deployment))
    )
    settings = "\n".join(f"{name}=${{{name}}}" for name in sorted(declared))
    released["Resources"] |= {
        **_SETTINGS,
        "SettingsVersion": {
            "Type": "AWS::AppConfig::HostedConfigurationVersion",
            "Properties": {
                "ApplicationId": {"Ref": "Settings"},
                "ConfigurationProfileId": {"Ref": "SettingsProfile"},
                "ContentType": "text/plain",
                "Content": {"Fn::Sub": settings},
            },
        },
    }
    released["Parameters"] = {
        "Stage": {**text, "AllowedPattern": "[a-z][a-z0-9-]{0,19}", "Description": "A part of every name"},
        "CodeBucket": {**text, "Description": "The bucket with the archives, in the stack's region"},
        "CodePrefix": {**text, "Default": f"minute8-{VERSION}/", "Description": "Before the archives' names"},
        **declared,
    }
    return released


def _with_parameters(value: Any) -> Any:
    match value:
        case {"S3Bucket": _, "S3Key": str(key), **more}:
            archive = {"Fn::Sub": f"${{CodePrefix}}{key.rpartition('/')[2]}"}
            return {"S3Bucket": {"Ref": "CodeBucket"}, "S3Key": archive, **more}
        case {"Fn::Sub": str(text)}:
            return {"Fn::Sub": text.replace(_STAGE, "${Stage}")}
        case dict():
            return {key: _with_parameters(part) for key, part in value.items()}
        case list():
            return [_with_parameters(part) for part in value]
        case str() if value == _STAGE:
            return {"Ref": "Stage"}
        case str() if _STAGE in value:
            escaped = re.sub(r"\$\{(?!!)", "${!", value)
            return {"Fn::Sub": escaped.replace(_STAGE, "${Stage}")}
    return value


if __name__ == "__main__":
    sys.exit(main())
