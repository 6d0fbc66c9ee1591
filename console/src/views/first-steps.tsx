/** What somebody does who has no jobs yet: three steps, each with its command. */

import type { JSX } from "preact";
import { cli, targetOf } from "../lib/commands";
import { addressOfApi, to } from "../lib/router";
import { hasRole, may, session } from "../lib/session";
import { Card, Code, Text } from "../ui/parts";

export function FirstSteps(): JSX.Element {
  const allowed = session.value?.tenant?.allowed_targets ?? [];
  const target = targetOf(allowed);
  const install = `pip install 'minute8-VERSION-py3-none-any.whl[cli]'  # of a release\nexport MINUTE8_URL=${addressOfApi(location.href)}\nexport MINUTE8_KEY=m8_…`;
  const create = cli("jobs", "create", "hello", "--every", "1m", "--target", target ?? "TARGET");
  return (
    <Card title="No jobs yet">
      <ol class="steps">
        <li>
          <h3>Take the command, and give it your key</h3>
          <Code text={install} label="commands that install minute8" />
        </li>
        <li>
          <h3>Create a job that runs each minute</h3>
          {allowed.length ? null : (
            <p class="late">The platform allows this tenant no target yet. Ask for one; it is what a job calls.</p>
          )}
          <Code text={create} label="command that creates a job" />
          {may("write") ? (
            <p>
              or <a href={to(["new-job"])}>create it here</a>
            </p>
          ) : (
            <p class="muted">
              {hasRole("write")
                ? "Nothing of this tenant can be changed now."
                : "A key of the role write can create one."}
            </p>
          )}
          {allowed.length ? (
            <p class="hint">
              {target ? "Targets" : "TARGET is the ARN or the https address of what the job calls; targets"} that are
              allowed: <Text most={300}>{allowed.join(", ")}</Text>
            </p>
          ) : null}
        </li>
        <li>
          <h3>Watch it run</h3>
          <Code text={cli("runs", "list", "hello")} label="command that lists runs" />
        </li>
      </ol>
    </Card>
  );
}
