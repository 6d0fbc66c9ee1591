"""`minute8 subscriptions`: addresses that get messages about failures, recoveries and overdue jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from common.timing.durations import parse_duration
from common.timing.instants import relative
from minute8.cli import output
from minute8.cli.options import AsJson, ExitCode, complete_job_ids, complete_tags, with_options
from minute8.cli.output import console, print_json, say
from minute8.cli.session import session

app = typer.Typer(
    no_args_is_help=True, help="Addresses that get messages about failures, recoveries and overdue jobs."
)

_Name = Annotated[str, typer.Argument(help="The subscription's name.")]
# The notifier's next round begins within a minute, and the round after it within two.
_WAIT_S = 150
_POLL_S = 3.0


@dataclass(frozen=True, slots=True)
class SubscriptionOptions:
    """The fields of a subscription."""

    target: Annotated[str, typer.Option(help="Where to: the URL of a webhook, or the ARN of an SNS topic.")]
    kind: Annotated[
        list[str] | None,
        typer.Option(
            help="failures, recoveries, overdue, not_running, too_long, too_short or no_success; may be repeated; "
            "all unless given."
        ),
    ] = None
    job: Annotated[str | None, typer.Option(help="Only this job.", autocompletion=complete_job_ids)] = None
    name_prefix: Annotated[str | None, typer.Option(help="Only jobs whose id or name begins with this.")] = (
        None
    )
    tag: Annotated[
        str | None, typer.Option(help="Only jobs with this tag.", autocompletion=complete_tags)
    ] = None
    delay: Annotated[
        str | None,
        typer.Option(
            help="A problem that ends within this time, such as 90s, is not reported; 1m unless given."
        ),
    ] = None
    group: Annotated[
        str | None,
        typer.Option(
            help="After a message, further problems are not reported for this time; 1h unless given."
        ),
    ] = None

    def fields(self) -> dict[str, Any]:
        """The set fields as the API takes them. Raises InvalidInput."""
        kind, name = ("sns", "arn") if self.target.startswith("arn:") else ("http", "url")
        fields: dict[str, Any] = {
            "target": {"kind": kind, name: self.target},
            "kinds": self.kind or None,
            "job_id": self.job,
            "name_prefix": self.name_prefix,
            "tag": self.tag,
            "delay_s": None if self.delay is None else _seconds(self.delay, "--delay"),
            "group_s": None if self.group is None else _seconds(self.group, "--group"),
        }
        return {field: value for field, value in fields.items() if value is not None}


@app.command("put")
@with_options
def put(ctx: typer.Context, name: _Name, options: SubscriptionOptions, as_json: AsJson = False) -> None:
    """Create a subscription or replace the whole of it. A disabled address is enabled again."""
    with session(ctx).client() as client:
        stored = client.put_subscription(name, options.fields())
    print_json(stored) if as_json else console().print(
        f"{name} reports {', '.join(stored['kinds'])} to {options.target}"
    )


@app.command("list")
def list_subscriptions(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List the subscriptions, and whether their deliveries work."""
    with session(ctx).client() as client:
        subscriptions = client.list_subscriptions()
    now = session(ctx).clock.now()
    output.show_list(
        subscriptions,
        as_json,
        ("SUBSCRIPTION", "STATE", "REPORTS", "ADDRESS", "LAST MESSAGE", "LAST ERROR"),
        lambda subscription: (
            subscription["name"],
            output.state(subscription["delivery"]["state"]),
            ", ".join(subscription["kinds"]),
            output.target_words(subscription["target"]),
            relative(subscription["delivery"]["delivered_at"], now),
            last["error"] if (last := subscription["delivery"]["last_try"]) else "",
        ),
        "no subscriptions",
    )


@app.command("show")
def show(ctx: typer.Context, name: _Name) -> None:
    """Show a subscription as JSON: its reports, its waiting messages, and the result of the last delivery."""
    with session(ctx).client() as client:
        print_json(client.get_subscription(name))


@app.command("delete")
def delete(ctx: typer.Context, name: _Name) -> None:
    """Delete a subscription. Waiting messages are not sent."""
    with session(ctx).client() as client:
        client.delete_subscription(name)
    console().print(f"{name} is deleted")


@app.command("test")
def test(
    ctx: typer.Context,
    name: _Name,
    wait: Annotated[bool, typer.Option(help="Wait for the result, two minutes at most.")] = True,
) -> None:
    """Send a test message. The exit code is 1 if the address does not take it."""
    clock = session(ctx).clock
    with session(ctx).client() as client:
        shown = client.test_subscription(name)
        give_up_at = clock.now() + _WAIT_S
        while wait and shown["delivery"]["test_waits"] and clock.now() < give_up_at:
            clock.sleep(_POLL_S)
            shown = client.get_subscription(name)
    result = shown["delivery"]["last_test"]
    if shown["delivery"]["test_waits"] or result is None:
        console().print(
            f"{name}: a test message will be sent; `minute8 subscriptions show {name}` shows its result"
        )
    elif result["ok"]:
        console().print(f"{name}: the address took the test message")
    else:
        say(f"minute8: {name}: the address did not take the test message: {result['error']}")
        raise typer.Exit(ExitCode.FAILED)


def _seconds(text: str, option: str) -> int:
    seconds = text.removesuffix("s")
    return int(seconds) if seconds.isdecimal() else parse_duration(text, option)
