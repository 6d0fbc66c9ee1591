import { to } from "../lib/router";
import type { Column } from "../ui/table";

/** The column of the job that a row is about. */
export function jobColumn<T extends { job_id: string }>(name = ""): Column<T> {
  return {
    name,
    class: "clip",
    cell: ({ job_id: id }) => (
      <a class="mono" href={to(["jobs", id])}>
        {id}
      </a>
    ),
  };
}
