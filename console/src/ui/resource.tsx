/** A page of what has a name: the list, and dialogs that make, change and delete. */

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type { Loaded } from "../lib/load";
import { api, may } from "../lib/session";
import { Ask, say } from "./actions";
import { Card, Empty, Found, Head, Text } from "./parts";
import { actions, type Column, List } from "./table";

/** A dialog that makes something new if `of` is null. */
export type Edit<T> = (props: { of: T | null; close: () => void; changed: () => void }) => JSX.Element;

export function Resource<T extends { name: string }>(props: {
  kind: "calendar" | "secret" | "subscription";
  sub: string;
  found: Loaded<T[]>;
  columns: Column<T>[];
  empty: ComponentChildren;
  /** The button that changes a row, and buttons before it. */
  verb: string;
  buttons?: (row: T) => JSX.Element;
  Edit: Edit<T>;
  /** What is said of a name before it is deleted. */
  warning: string;
}): JSX.Element {
  const { kind, found, Edit } = props;
  const [edited, edit] = useState<T | null>();
  const [deleted, remove] = useState<T>();
  const title = `${kind[0]?.toUpperCase()}${kind.slice(1)}s`;
  const changes = actions<T>((row) => (
    <div class="actions">
      {props.buttons?.(row)}
      <button type="button" onClick={() => edit(row)}>
        {props.verb}
      </button>
      <button type="button" onClick={() => remove(row)}>
        Delete
      </button>
    </div>
  ));
  const act = async (name: string) => {
    await api().delete(`/v1/${kind}s/{name}` as const, { path: { name } });
    say(`${name} is deleted`);
    found.reload();
  };
  return (
    <>
      <Head title={title} sub={props.sub}>
        {may("write") ? (
          <button type="button" class="primary" onClick={() => edit(null)}>
            New {kind}
          </button>
        ) : null}
      </Head>
      <Card>
        <Found found={found}>
          {(rows) => (
            <List
              label={title}
              columns={may("write") ? [...props.columns, changes] : props.columns}
              rows={rows}
              keyOf={(row) => row.name}
              empty={<Empty title={`No ${kind}s yet`}>{props.empty}</Empty>}
            />
          )}
        </Found>
      </Card>
      {edited === undefined ? null : <Edit of={edited} close={() => edit(undefined)} changed={found.reload} />}
      {deleted ? (
        <Ask
          title={`Delete this ${kind}`}
          verb="Delete"
          danger
          act={() => act(deleted.name)}
          close={() => remove(undefined)}
        >
          <p>
            <Text>{deleted.name}</Text> {props.warning}
          </p>
        </Ask>
      ) : null}
    </>
  );
}
