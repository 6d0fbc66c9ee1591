/** The API's description, rendered: each operation with its parameters, body and answers. */

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { useLoad } from "../lib/load";
import { api, hasRole } from "../lib/session";
import { Card, Code, Head, Problem, Waiting } from "../ui/parts";
import { Scroll } from "../ui/table";

interface Schema {
  $ref?: string;
  type?: string;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  enum?: unknown[];
  const?: unknown;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  examples?: unknown[];
}

interface Operation {
  operationId: string;
  summary: string;
  description?: string;
  tags?: string[];
  parameters?: { name: string; in: string; description?: string; required?: boolean; schema: Schema }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, { description: string; content?: Record<string, { schema: Schema }> }>;
  "x-minute8-role"?: string;
}

interface Document {
  info: { title: string; description: string };
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

export function Api(): JSX.Element {
  const found = useLoad(
    "openapi",
    async (signal) => (await api().get("/v1/openapi.json", { signal })) as unknown as Document,
  );
  const [search, setSearch] = useState("");
  const shown = useMemo(() => operationsOf(found.data, search), [found.data, search]);
  return (
    <>
      <Head title="API" sub={found.data ? `${shown.length} operations` : null}>
        <a class="button" href={`${addressOf()}/v1/openapi.json`}>
          openapi.json
        </a>
      </Head>
      <Problem error={found.error} retry={found.reload} />
      {found.data ? (
        <>
          <Card title="About">
            {found.data.info.description.split("\n\n").map((paragraph) => (
              <p key={paragraph}>{plain(paragraph)}</p>
            ))}
          </Card>
          <search class="filters" aria-label="Search operations">
            <input
              type="search"
              placeholder="Search operations"
              aria-label="Search operations"
              value={search}
              onInput={(event) => setSearch(event.currentTarget.value)}
            />
          </search>
          <Card title="Operations">
            {shown.map(([method, path, operation]) => (
              <Shown
                key={`${method} ${path}`}
                method={method}
                path={path}
                operation={operation}
                schemas={found.data?.components.schemas ?? {}}
              />
            ))}
          </Card>
        </>
      ) : (
        <Waiting lines={8} />
      )}
    </>
  );
}

/** A text without its marks of code. */
function plain(text: string): string {
  return text.replaceAll("`", "");
}

function addressOf(): string {
  return location.pathname.replace(/\/console.*$/, "").replace(/\/$/, "");
}

function operationsOf(document: Document | undefined, search: string): [string, string, Operation][] {
  const all = Object.entries(document?.paths ?? {}).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, string, Operation] => [method, path, operation]),
  );
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter(([method, path, { summary, "x-minute8-role": needed }]) => {
    if (needed === "operator" && !hasRole("operator")) return false;
    const text = `${method} ${path} ${summary}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

type ShownProps = { method: string; path: string; operation: Operation; schemas: Record<string, Schema> };

function Shown({ method, path, operation, schemas }: ShownProps): JSX.Element {
  const [open, setOpen] = useState(false);
  const body = Object.values(operation.requestBody?.content ?? {})[0]?.schema;
  const done = Object.entries(operation.responses).find(([status]) => status.startsWith("2"));
  const answer = Object.values(done?.[1].content ?? {})[0]?.schema;
  return (
    <details class="operation" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <code class={`method ${method}`}>{method.toUpperCase()}</code> <code>{path}</code>{" "}
        <span class="muted">{plain(operation.summary)}</span>{" "}
        {operation["x-minute8-role"] ? <span class="tag">{operation["x-minute8-role"]}</span> : null}
      </summary>
      {open ? (
        <div class="inside">
          {operation.description ? <p>{plain(operation.description)}</p> : null}
          {operation.parameters?.length ? (
            <Fields
              title="Parameters"
              fields={operation.parameters.map((parameter) => [
                parameter.name,
                `${parameter.in}${parameter.required ? ", required" : ""}`,
                typeOf(parameter.schema),
                parameter.description ?? "",
              ])}
            />
          ) : null}
          {body ? <SchemaFields title="Body" schema={body} schemas={schemas} /> : null}
          {answer ? <SchemaFields title={`Answer ${done?.[0]}`} schema={answer} schemas={schemas} /> : null}
          <p class="muted small">
            Refusals:{" "}
            {Object.entries(operation.responses)
              .filter(([status]) => !status.startsWith("2"))
              .map(([status, { description }]) => `${status} ${description}`)
              .join(" · ")}
          </p>
        </div>
      ) : null}
    </details>
  );
}

function SchemaFields(props: { title: string; schema: Schema; schemas: Record<string, Schema> }): JSX.Element {
  const name = props.schema.$ref?.split("/").at(-1) ?? "";
  const schema = props.schemas[name] ?? props.schema;
  const example = schema.examples?.[0];
  return (
    <>
      <Fields
        title={`${props.title} ${name}`}
        fields={Object.entries(schema.properties ?? {}).map(([field, member]) => [
          field,
          schema.required?.includes(field) ? "always" : "",
          typeOf(member),
          member.description ?? props.schemas[member.$ref?.split("/").at(-1) ?? ""]?.description ?? "",
        ])}
      />
      {example ? <Code text={JSON.stringify(example, null, 2)} label="example" /> : null}
    </>
  );
}

function Fields({ title, fields }: { title: string; fields: [string, string, string, string][] }): JSX.Element | null {
  if (!fields.length) return null;
  return (
    <Scroll label={title}>
      <h3>{title}</h3>
      <table aria-label={title}>
        <tbody>
          {fields.map(([name, where, type, description]) => (
            <tr key={`${name} ${where}`}>
              <th scope="row">
                <code>{name}</code>
              </th>
              <td class="muted">{where}</td>
              <td>
                <code>{type}</code>
              </td>
              <td class="wrap">{description}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

/** A schema in a few words. Pure. */
export function typeOf(schema: Schema): string {
  if (schema.$ref) return schema.$ref.split("/").at(-1) ?? "";
  const several = schema.anyOf ?? schema.oneOf;
  if (several) return [...new Set(several.map(typeOf))].join(" | ");
  if (schema.enum) return schema.enum.map((choice) => JSON.stringify(choice)).join(" | ");
  if (schema.type === "array") return `${schema.items ? typeOf(schema.items) : "any"}[]`;
  return schema.type ?? "any";
}
