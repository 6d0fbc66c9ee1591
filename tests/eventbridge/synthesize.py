"""The templates that CDK, SAM and Serverless make of `examples/cloudformation`, kept for the tests that deploy them.

    python -m tests.eventbridge.synthesize          # compares them with the kept ones
    python -m tests.eventbridge.synthesize --keep   # writes them

CDK and SAM's translator are installed into a temporary folder, from npm and PyPI.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "cloudformation"
SYNTHESIZED = Path(__file__).with_name("synthesized")
CDK = ("aws-cdk-lib@2.240.0", "constructs@10.8.1", "aws-cdk@2.1148.1")
SAM = "aws-sam-translator==1.115.0"
# CloudFormation does the transforms in their order, each of them on what the one before made.
_TRANSLATE = """
import json, sys
from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse
class NoPolicies:
    def load(self):
        return {}
template = yaml_parse(open(sys.argv[1]).read())
first, *others = template["Transform"]
print(json.dumps({"Transform": others, **transform({**template, "Transform": first}, {}, NoPolicies())}))
"""

Template = dict[str, Any]


def of_cdk(folder: Path) -> Template:
    run("npm", "install", "--no-audit", "--no-fund", "--silent", *CDK, folder=folder)
    (folder / "cdk.js").write_text((EXAMPLES / "cdk.js").read_text())
    options = ("--no-version-reporting", "--no-path-metadata", "--no-notices", "--json")
    return dict(json.loads(run("npx", "cdk", "synth", "--app", "node cdk.js", *options, folder=folder)))


def of_sam(folder: Path) -> Template:
    run(sys.executable, "-m", "pip", "install", "-q", "--target", str(folder), SAM, folder=folder)
    return dict(json.loads(run(sys.executable, "-c", _TRANSLATE, str(EXAMPLES / "sam.yml"), folder=folder)))


def of_serverless(folder: Path) -> Template:
    (folder / "serverless.yml").write_text((EXAMPLES / "serverless.yml").read_text())
    (folder / "index.py").write_text("def handler(event, context):\n    return event\n")
    run(str(ROOT / "node_modules" / ".bin" / "osls"), "package", folder=folder)
    template = (folder / ".serverless" / "cloudformation-template-update-stack.json").read_text()
    # The key and the version's name change with each run.
    return dict(json.loads(re.sub(r"/[0-9]{13}-[0-9T:.Z-]+/", "/now/", template)))


TOOLS: dict[str, Callable[[Path], Template]] = {"cdk": of_cdk, "sam": of_sam, "serverless": of_serverless}


def run(*words: str, folder: Path) -> str:
    """What a program prints. Raises CalledProcessError; its own errors are shown."""
    environment = {**os.environ, "AWS_DEFAULT_REGION": "us-east-1"}
    done = subprocess.run(words, cwd=folder, env=environment, check=True, text=True, stdout=subprocess.PIPE)
    return done.stdout


def kept_template(tool: str) -> Path:
    return SYNTHESIZED / f"{tool}.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("tools", nargs="*", default=list(TOOLS), metavar="TOOL")
    options = parser.parse_args()
    different = []
    for tool in options.tools:
        with tempfile.TemporaryDirectory() as folder:
            text = json.dumps(TOOLS[tool](Path(folder)), indent=2) + "\n"
        if options.keep:
            kept_template(tool).write_text(text)
        elif text != kept_template(tool).read_text():
            different.append(tool)
    print(f"{len(options.tools)} templates, different from the kept ones: {', '.join(different) or 'none'}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
