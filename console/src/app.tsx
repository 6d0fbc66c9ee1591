import { Component, type ComponentChildren, type JSX } from "preact";
import { refresh } from "./lib/load";
import { place, to } from "./lib/router";
import { hasRole, may, session } from "./lib/session";
import { lazily } from "./ui/lazy";
import { Empty, Head, Problem } from "./ui/parts";
import { Shell } from "./ui/shell";
import { Overview } from "./views/overview";
import { SignIn } from "./views/sign-in";

type View = (path: string[]) => JSX.Element;

// What is not looked at first is loaded when it is opened.
const jobViews = () => import("./views/of-jobs");
const Jobs = lazily(() => jobViews().then((views) => views.Jobs));
const Job = lazily(() => jobViews().then((views) => views.Job));
const Run = lazily(() => jobViews().then((views) => views.Run));
const Runs = lazily(() => jobViews().then((views) => views.Runs));
const Failures = lazily(() => jobViews().then((views) => views.Failures));
const Permits = lazily(() => jobViews().then((views) => views.Permits));
const Upcoming = lazily(() => jobViews().then((views) => views.Upcoming));
const editorViews = () => import("./views/editor");
const NewJob = lazily(() => editorViews().then((views) => views.NewJob));
const EditJob = lazily(() => editorViews().then((views) => views.EditJob));
const moreViews = () => import("./views/of-tenant");
const Calendars = lazily(() => moreViews().then((views) => views.Calendars));
const Secrets = lazily(() => moreViews().then((views) => views.Secrets));
const Subscriptions = lazily(() => moreViews().then((views) => views.Subscriptions));
const Keys = lazily(() => moreViews().then((views) => views.Keys));
const Audit = lazily(() => moreViews().then((views) => views.Audit));
const Quota = lazily(() => moreViews().then((views) => views.Quota));
const Api = lazily(() => moreViews().then((views) => views.Api));
const platformViews = () => import("./views/of-platform");
const Platform = lazily(() => platformViews().then((views) => views.Platform));
const Tenant = lazily(() => platformViews().then((views) => views.Tenant));

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
  permits: ([, name = ""]) => <Permits name={name} key={name} />,
  calendars: ([, name]) => <Calendars name={name} />,
  secrets: () => <Secrets />,
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

/** A view; in its place why it cannot be shown, which stays until somebody asks again or goes elsewhere. */
class Guarded extends Component<{ at: string; children: ComponentChildren }, { error?: unknown }> {
  override state: { error?: unknown } = {};

  override componentDidUpdate(before: { at: string }): void {
    if (this.state.error && before.at !== this.props.at) this.setState({ error: undefined });
  }

  override componentDidCatch(error: unknown): void {
    this.setState({ error });
  }

  override render(): ComponentChildren {
    const again = () => {
      this.setState({ error: undefined });
      refresh();
    };
    return this.state.error ? <Problem error={this.state.error} retry={again} /> : this.props.children;
  }
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
        <Guarded at={path.join("/")}>{view(path)}</Guarded>
      ) : (
        <Empty title="There is no such view">
          <a href={to([])}>Go to the first one</a>
        </Empty>
      )}
    </Shell>
  );
}
