import type { JSX } from "preact";
import { place, to } from "./lib/router";
import { session } from "./lib/session";
import { Empty } from "./ui/parts";
import { Shell } from "./ui/shell";
import { Job } from "./views/job";
import { Jobs } from "./views/jobs";
import { SignIn } from "./views/sign-in";

type View = (path: string[]) => JSX.Element;

const OF_TENANT: Record<string, View> = {
  jobs: ([, id]) => (id ? <Job id={id} key={id} /> : <Jobs />),
};
const OF_PLATFORM: Record<string, View> = {};

export function App(): JSX.Element {
  const current = session.value;
  if (!current) return <SignIn />;
  const { path } = place.value;
  const view = (current.role === "operator" ? OF_PLATFORM : OF_TENANT)[path[0] ?? ""];
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
