"""The optional template with CloudFront and a rate rule in front of the API."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

FOLDER: Final = Path(__file__).resolve().parents[2] / "examples" / "cloudfront"
TEMPLATE: Final[dict[str, Any]] = yaml.safe_load((FOLDER / "template.yml").read_text())


def references(value: Any) -> Iterator[str]:
    match value:
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), _]}:
            yield name
        case {"Fn::Sub": str(text)}:
            yield from (part.partition("}")[0].partition(".")[0] for part in text.split("${")[1:])
        case dict():
            for inner in value.values():
                yield from references(inner)
        case list():
            for inner in value:
                yield from references(inner)


def test_cfn_lint_finds_no_error_and_each_reference_resolves() -> None:
    lint = Path(sys.executable).with_name("cfn-lint")
    linted = subprocess.run(
        [str(lint), "--regions", "us-east-1", "--", str(FOLDER / "template.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (linted.returncode, linted.stdout) == (0, "")
    assert set(references(TEMPLATE)) == {*TEMPLATE["Parameters"], *TEMPLATE["Resources"]}


def test_each_address_has_a_rate_and_above_it_gets_429() -> None:
    acl = TEMPLATE["Resources"]["RateRule"]["Properties"]
    assert (acl["Scope"], acl["DefaultAction"]) == ("CLOUDFRONT", {"Allow": {}})
    [rule] = acl["Rules"]
    rate = rule["Statement"]["RateBasedStatement"]
    assert rate == {
        "Limit": {"Ref": "RequestsPerMinute"},
        "EvaluationWindowSec": 60,
        "AggregateKeyType": "IP",
    }
    answer = rule["Action"]["Block"]["CustomResponse"]
    body = yaml.safe_load(acl["CustomResponseBodies"][answer["CustomResponseBodyKey"]]["Content"])
    assert (answer["ResponseCode"], body["status"]) == (429, 429)
    least, rate_by_default = (
        TEMPLATE["Parameters"]["RequestsPerMinute"][key] for key in ("MinValue", "Default")
    )
    assert (least, rate_by_default) == (10, 1_200)
    assert f"over {rate_by_default:,} requests in a minute" in (FOLDER / "README.md").read_text()


def test_every_request_reaches_the_api_with_its_key_and_no_answer_is_kept() -> None:
    distribution = TEMPLATE["Resources"]["Front"]["Properties"]["DistributionConfig"]
    behavior = distribution["DefaultCacheBehavior"]
    # https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/using-managed-cache-policies.html
    assert behavior["CachePolicyId"] == "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"  # CachingDisabled
    # It sends Authorization on, and leaves Host to the origin, which would not know CloudFront's.
    assert (
        behavior["OriginRequestPolicyId"] == "b689b0a8-53d0-40ab-baf2-68738e2966ac"
    )  # AllViewerExceptHostHeader
    assert {"GET", "PUT", "POST", "PATCH", "DELETE"} <= set(behavior["AllowedMethods"])
    [origin] = distribution["Origins"]
    assert origin["CustomOriginConfig"]["OriginProtocolPolicy"] == "https-only"
    assert origin["CustomOriginConfig"]["OriginReadTimeout"] > 29
