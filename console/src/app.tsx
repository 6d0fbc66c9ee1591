import type { JSX } from "preact";
import { place, to } from "./lib/router";
import { hasRole, may, session } from "./lib/session";
import { Empty, Head } from "./ui/parts";
import { Shell } from "./ui/shell";
import { Api } from "./views/api";
import { Audit } from "./views/audit";
import { Calendars } from "./views/calendars";
import { EditJob, NewJob } from "./views/editor";
import { Failures } from "./views/failures";
import { Job } from "./views/job";
import { Jobs } from "./views/jobs";
import { Keys } from "./views/keys";
import { Overview } from "./views/overview";
import { Platform } from "./views/platform";
import { Quota } from "./views/quota";
import { Run } from "./views/run";
import { Runs } from "./views/runs";
import { SignIn } from "./views/sign-in";
import { Subscriptions } from "./views/subscriptions";
import { Tenant } from "./views/tenant";
import { Upcoming } from "./views/upcoming";

type View = (path: string[]) => JSX.Element;

const OF_TENANT: Record<string, View> = {
  "": () => <Overview />,
  jobs: ([, id, verb]) => {
    if (!id) return <Jobs />;
    if (verb === "edit") return forWriters(<EditJob id={id} key={id} />);
    return <Job id={id} tab={verb ?? ""} key={id} />;
  },
  "new-job": () => forWriters(<NewJob />),
  runs: ([, id]) => (id ? <Run id={id} key={id} /> : <Runs />),
  failures: () => <Failures />,
  upcoming: () => <Upcoming />,
  calendars: () => <Calendars />,
  subscriptions: () => <Subscriptions />,
  keys: () => <Keys owner={{ kind: "self" }} />,
  audit: () => <Audit owner={{ kind: "self" }} />,
  quota: () => <Quota />,
  api: () => <Api />,
};
const OF_PLATFORM: Record<string, View> = {
  "": () => <Platform />,
  tenants: ([, id]) => (id ? <Tenant id={id} key={id} /> : <Platform />),
  keys: () => <Keys owner={{ kind: "platform" }} />,
  audit: () => <Audit owner={{ kind: "platform" }} />,
  api: () => <Api />,
};

/** A form for those who may send it. */
function forWriters(form: JSX.Element): JSX.Element {
  if (may("write")) return form;
  return (
    <>
      <Head title="Jobs" />
      <Empty title={hasRole("write") ? "Nothing of this tenant can be changed" : "A key of the role write is needed"}>
        <a href={to(["jobs"])}>All jobs</a>
      </Empty>
    </>
  );
}

export function App(): JSX.Element {
  const current = session.value;
  if (!current) return <SignIn />;
  const { path } = place.value;
  const views = current.role === "operator" ? OF_PLATFORM : OF_TENANT;
  const name = path[0] ?? "";
  const view = Object.hasOwn(views, name) ? views[name] : undefined;
  return (
    <Shell>
      {view ? (
        view(path)
      ) : (
        <Empty title="There is no such view">
          <a href={to([])}>Go to the first one</a>
        </Empty>
      )}
    </Shell>
  );
}
