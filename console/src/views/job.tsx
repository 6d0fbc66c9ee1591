import type { JSX } from "preact";
import { useLoad } from "../lib/load";
import { api } from "../lib/session";
import { Head, Problem, Waiting } from "../ui/parts";
import { HealthState } from "./jobs";

export function Job({ id }: { id: string }): JSX.Element {
  const job = useLoad(`job ${id}`, (signal) => api().get("/v1/jobs/{job_id}", { path: { job_id: id }, signal }), 15);
  return (
    <>
      <Head title={<span class="mono">{id}</span>} sub={job.data ? <HealthState job={job.data} /> : null} />
      <Problem error={job.error} retry={job.reload} />
      {job.data ? null : <Waiting />}
    </>
  );
}
