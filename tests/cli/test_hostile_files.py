"""Files of strangers: each is refused with a reason, or read, within work that grows with the file and no faster."""

from __future__ import annotations

from pathlib import Path

import pytest

from minute8.cli.commands.transfer import READERS
from minute8.cli.job_files import yaml_entries
from minute8.cli.sources import foreign
from minute8.cli.sources.source_job import Defaults, SourceJob
from tests.cli.conftest import Desk
from tests.worlds import ARN

DEFAULTS = Defaults({"kind": "lambda", "arn": ARN}, "UTC")
MANY = 300_000
CRONJOB = """kind: CronJob
metadata: {name: a}
spec:
  schedule: '* * * * *'
  jobTemplate: {spec: {template: {spec: {containers: [{image: IMAGE}]}}}}
"""


def read(name: str, text: str) -> list[SourceJob]:
    return list(READERS[name](text, DEFAULTS))


def refusal(name: str, text: str) -> str:
    (source_job,) = read(name, text)
    return source_job.refusal


@pytest.mark.parametrize(
    "text",
    ["\n" * MANY, "kind: x\n" + "\n" * MANY, '"Rules":[' * MANY, "cron:\n" * MANY, "resource " * MANY],
    ids=["blank lines", "blank lines of YAML", "lists of rules", "keys", "words"],
)
def test_a_long_file_of_nothing_is_looked_at_once(text: str) -> None:
    """A million blank lines had no end."""
    foreign.described(text)
    assert foreign.without_jobs("f", "cronjob", text).startswith("f, read as cronjob, has no jobs")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("0x" + "f" * 10_000, "a number of more than 1000 characters"),
        ("9" * 10_000, "a number of more than 1000 characters"),
        ("1" + ":1" * 50_000, "a number of more than 1000 characters"),
        ("[" * 100_000, "it nests too deeply"),
        ("- " * 20_000, "expected the node content"),
        ('"\\UFFFFFFFF"', "it has a character beyond Unicode's"),
        ("!!int ''", "this is no int"),
        ("!!float ''", "this is no float"),
        ("!!bool foo", "this is no bool"),
        ("!!timestamp foo", "this is no timestamp"),
        (".inf", "containers.0.image is a float, which JSON does not have"),
        (".nan", "containers.0.image is a float, which JSON does not have"),
        ("x\0", "special characters are not allowed"),
    ],
)
def test_yaml_that_has_no_value_is_refused(value: str, reason: str) -> None:
    assert reason in refusal("cronjob", CRONJOB.replace("IMAGE", value))


@pytest.mark.parametrize("value", ["9" * 10_000, '"\\UFFFFFFFF"', "!!int ''", "[" * 100_000])
def test_so_is_a_file_of_jobs(value: str) -> None:
    with pytest.raises(ValueError, match=r"not YAML|more than 1000 characters|this is no int"):
        yaml_entries(f"job_id: {value}")


def test_a_number_of_a_thousand_characters_is_read() -> None:
    assert not refusal("cronjob", CRONJOB.replace("IMAGE", "9" * 1_000))


@pytest.mark.parametrize("name", ["startingDeadlineSeconds", "backoffLimit"])
@pytest.mark.parametrize("value", [".nan", ".inf", "'200'", "1.5", "true"])
def test_a_number_of_a_cronjob_is_whole(name: str, value: str) -> None:
    text = CRONJOB + f"  startingDeadlineSeconds: {value}\n"
    if name == "backoffLimit":
        text = CRONJOB.replace("{spec: {template", f"{{spec: {{backoffLimit: {value}, template")
    assert refusal("cronjob", text).startswith(f"{name} is ")


@pytest.mark.parametrize("name", ["crontab", "cronjob"])
def test_an_expression_has_256_characters(name: str) -> None:
    def text(minute: str) -> str:
        if name == "crontab":
            return f"{minute} * * * * x"
        return CRONJOB.replace("'* *", f"'{minute} *").replace("IMAGE", "x")

    longest = "1," * 123 + "10"  # and " * * * *"
    assert not refusal(name, text(longest))
    assert refusal(name, text(f"{longest}0")).startswith("an expression of 257 characters")
    assert refusal(name, text(f"*/{'9' * MANY}")).startswith("an expression of 300010 characters")


def test_an_entry_of_a_crontab_has_200_variables_before_it() -> None:
    """Each has all of them in its payload: 3,000 took seconds and memory by their square."""
    variables = "".join(f"A{n}=1\n" for n in range(200))
    assert not refusal("crontab", f"{variables}* * * * * x")
    assert refusal("crontab", f"{variables}B=1\n* * * * * x") == "more than 200 variables stand before it"


def test_a_line_of_a_crontab_ends_where_cron_ends_it() -> None:
    """What follows in a comment would be an entry of its own."""
    comment = "".join(f"# safe{end}* * * * * evil" for end in "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
    (source_job,) = read("crontab", f"{comment}\r\n* * * * * x\r\n")
    assert (source_job.where, source_job.definition["payload"]["command"]) == ("line 2", "x")


def test_a_value_with_spaces_is_read_once() -> None:
    (source_job,) = read("crontab", f"A=a{' ' * MANY}b  \n* * * * * x")
    assert source_job.definition["payload"]["environment"]["A"] == f"a{' ' * MANY}b"


def test_names_that_are_doubled_at_the_end_are_found_at_once() -> None:
    names = "".join(f'"a{n}":1,' for n in range(MANY))
    assert refusal("ndjson", f'{{{names}"a{MANY - 1}":2}}').endswith(f"the name 'a{MANY - 1}' appears twice")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("jobs.ndjson", '{"job_id":"\\ud800","schedule":{"cron":"* * * * *"}}'),
        ("jobs.ndjson", '{"job_id":"a","schedule":{"cron":"\\u0000\\u001b[2J"},"name":"\\u202e"}'),
        (
            "jobs.ndjson",
            '{"job_id":"a","schedule":{"cron":"0 3 * * *"},"payload":' + "[" * 900 + "]" * 900 + "}",
        ),
        ("jobs.ndjson", '{"job_id":"a","schedule":{"cron":"0 3 * * *"},"payload":1e999}'),
        ("jobs.ndjson", '{"job_id":"a","schedule":{"cron":"0 3 * * *"},"payload":' + "9" * 5_000 + "}"),
        ("jobs.ndjson", '{"job_id":"a","schedule":{"cron":"*/' + "9" * 100_000 + ' * * * *"}}'),
        ("jobs.yaml", CRONJOB.replace("name: a", 'name: "\\e[2J\\u202e\\x9b\\ud800"').replace("IMAGE", "x")),
        ("cron", "\0\x1b[2J * * * * \u202e\n# \x1b]52;c;x\x07 \x9b\n"),
        (
            "eb.json",
            '{"Name":"\\ud800","ScheduleExpression":"rate(1 minute)","Target":{"Arn":"' + ARN + '"}}',
        ),
        ("eb.json", '{"ScheduleExpression":"rate(' + "9" * 10_000 + ' minutes)","Name":"a","Target":{}}'),
        ("w.yml", "on:\n  schedule:\n    - {cron: '* * * * *', timezone: \"\\e[2J\"}\n"),
        ("utf16", CRONJOB.encode("utf-16").decode("latin-1")),
    ],
)
def test_what_the_api_refuses_is_named_and_nothing_is_stored(
    desk: Desk, tmp_path: Path, name: str, content: str
) -> None:
    """Nothing that a terminal obeys is printed: the desk looks."""
    file = tmp_path / name
    file.write_bytes(content.encode("latin-1" if name == "utf16" else "utf-8", "surrogatepass"))
    done = desk("import", str(file), "--target", ARN)
    assert done.code in (2, 3), (done.code, done.out, done.err)
    assert "refused" in done.out or done.err
    assert len(done.out + done.err) < 3_000
    assert desk("jobs", "list", "--json").json == []


def test_half_a_character_in_an_option_is_refused(desk: Desk) -> None:
    """A byte that is no UTF-8 comes so from a shell; it was a traceback."""
    done = desk("jobs", "create", "a", "--cron", "0 3 * * *", "--target", ARN, "--name", "\udcff")
    assert (done.code, done.err) == (2, "minute8: the body is not valid Unicode\n")
    assert desk("jobs", "list", "--json").json == []
