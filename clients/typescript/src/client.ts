/** How a request is sent, repeated and refused. Every route of the OpenAPI document is typed, and none has code here. */

import type { components, paths } from "./api.js";
import { Minute8Problem, problemOf, Unreachable } from "./problems.js";

type Method = "get" | "post" | "put" | "patch" | "delete";

/** The paths that have this method. */
export type PathsOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? P : never;
}[keyof paths];

type Operation<M extends Method, P extends keyof paths> = paths[P] extends Record<M, infer O> ? O : never;
type Parameters<O, In extends "path" | "query"> = O extends { parameters: Record<In, infer T> }
  ? T
  : O extends { parameters: Partial<Record<In, infer T>> }
    ? T
    : never;
type Body<O> = O extends { requestBody?: { content: infer C } }
  ? C extends { "application/x-ndjson": unknown }
    ? string | (C extends { "application/json": infer J } ? J : never)
    : C[keyof C]
  : never;
type Given<R> = R extends { content: infer C }
  ? C extends { "application/json": infer J }
    ? J
    : C extends { "application/x-ndjson": unknown }
      ? string
      : undefined
  : undefined;

/** What a method of a path answers. NDJSON comes as text. */
export type Answer<M extends Method, P extends keyof paths> =
  Operation<M, P> extends { responses: infer R }
    ? Given<R extends Record<200, infer T> ? T : never> extends infer A
      ? [A] extends [never]
        ? Given<R[keyof R & (201 | 202 | 204)]>
        : A
      : never
    : never;

/** What goes with a request: the parameters of its path and query, its body, and what the call asks for. */
export type Options<O> = {
  path?: Parameters<O, "path">;
  query?: NonNullable<Parameters<O, "query">>;
  body?: Body<O>;
  /** Only if this is still the current revision. */
  revision?: number;
  /** Only if it does not exist yet. */
  onlyNew?: boolean;
  /** With the same key, the request takes effect once, however often it is sent. */
  idempotencyKey?: string;
  /** Whether it may be sent again after an answer that was lost. */
  repeatable?: boolean;
  signal?: AbortSignal;
};

export interface Settings {
  /** The address of the API; with or without `/v1`. */
  url: string;
  /** An API key or a signed token. */
  key: string;
  fetch?: typeof fetch;
  sleep?: (seconds: number) => Promise<void>;
  /** How long one answer may take, in seconds. */
  timeoutS?: number;
}

type BulkLine = components["schemas"]["BulkLine"];
type BulkQuery = NonNullable<Options<Operation<"post", "/v1/jobs/_bulk">>["query"]>;

const BULK_LINES = 1_000;
// Before lines that are refused as busy are sent again.
const BUSY_WAITS_S = [1, 2, 4, 8, 15, 30, 30, 30];
const BUSY = "urn:minute8:problem:busy";
const isBusy = (line: BulkLine | undefined) => line?.problem?.type === BUSY;
const TRIES = 4;
const FIRST_WAIT_S = 0.2;
const LONGEST_WAIT_S = 10;
const TIMEOUT_S = 35;
// What a gateway answers when it has no answer from the API, which may have done all. A 500 is the API's own failure.
const ANSWER_LOST = [502, 503, 504];
const MOST_KNOWN = 32;
const LONGEST_KNOWN = 256 * 1024;
const NDJSON = "application/x-ndjson";

/** Calls the API with one key. A call that may be repeated is, if the API throttles, fails or cannot be reached. */
export class Minute8 {
  readonly #url: string;
  readonly #key: string;
  readonly #fetch: typeof fetch;
  readonly #sleep: (seconds: number) => Promise<void>;
  readonly #timeoutS: number;
  readonly #known = new KnownLists();

  constructor(settings: Settings) {
    this.#url = settings.url.replace(/\/+$/, "").replace(/\/v1$/, "");
    this.#key = settings.key;
    this.#fetch = settings.fetch ?? ((input, init) => fetch(input, init));
    this.#sleep = settings.sleep ?? ((seconds) => new Promise((done) => setTimeout(done, seconds * 1000)));
    this.#timeoutS = settings.timeoutS ?? TIMEOUT_S;
  }

  /** GET: always repeatable. Throws Minute8Problem, Unreachable. */
  get<P extends PathsOf<"get">>(path: P, options: Options<Operation<"get", P>> = {}): Promise<Answer<"get", P>> {
    return this.#call("get", path, options);
  }

  /** POST: repeated only with `repeatable` or an `idempotencyKey`. Throws Minute8Problem, Unreachable. */
  post<P extends PathsOf<"post">>(path: P, options: Options<Operation<"post", P>> = {}): Promise<Answer<"post", P>> {
    return this.#call("post", path, options);
  }

  /** PUT: repeated unless it names a revision or only creates. Throws Minute8Problem, Unreachable. */
  put<P extends PathsOf<"put">>(path: P, options: Options<Operation<"put", P>> = {}): Promise<Answer<"put", P>> {
    return this.#call("put", path, options);
  }

  /** PATCH: repeated unless it names a revision. Throws Minute8Problem, Unreachable. */
  patch<P extends PathsOf<"patch">>(
    path: P,
    options: Options<Operation<"patch", P>> = {},
  ): Promise<Answer<"patch", P>> {
    return this.#call("patch", path, options);
  }

  /** DELETE: repeated unless it names a revision. Throws Minute8Problem, Unreachable. */
  delete<P extends PathsOf<"delete">>(
    path: P,
    options: Options<Operation<"delete", P>> = {},
  ): Promise<Answer<"delete", P>> {
    return this.#call("delete", path, options);
  }

  /** The pages of a list, one after the other, until its cursor ends. */
  async *pages<P extends PathsOf<"get">>(
    path: P,
    options: Options<Operation<"get", P>> = {},
  ): AsyncGenerator<Answer<"get", P>> {
    let cursor: string | null | undefined;
    do {
      const query = { ...options.query, ...(cursor ? { cursor } : {}) };
      const page = await this.get(path, { ...options, query } as Options<Operation<"get", P>>);
      yield page;
      cursor = (page as { next_cursor?: string | null }).next_cursor;
    } while (cursor);
  }

  /**
   * Creates and replaces jobs (definitions with their `job_id`), and returns the result of each; `line` counts from 1.
   * Lines that are refused as busy are sent again, until none was stored for two minutes: then it throws a `busy`
   * problem with the `results` of all.
   */
  async bulkPut(jobs: readonly Record<string, unknown>[], query: BulkQuery = {}): Promise<BulkLine[]> {
    const results: BulkLine[] = [];
    let waits = [...BUSY_WAITS_S];
    for (let first = 0; first < jobs.length; first += BULK_LINES) {
      let left = jobs.slice(first, first + BULK_LINES).map((job, nth) => ({ job, nth: first + nth }));
      for (;;) {
        const body = left.map(({ job }) => JSON.stringify(job)).join("\n");
        const answer = await this.post("/v1/jobs/_bulk", { query, body, repeatable: true });
        answer.results.forEach((line, at) => {
          const nth = left[at]?.nth ?? 0;
          results[nth] = { ...line, line: nth + 1 };
        });
        const stillBusy = left.filter(({ nth }) => isBusy(results[nth]));
        if (stillBusy.length < left.length) waits = [...BUSY_WAITS_S];
        left = stillBusy;
        const wait = left.length ? waits.shift() : undefined;
        if (!wait) break;
        await this.#sleep(wait);
      }
    }
    const busy = results.filter(isBusy).length;
    if (!busy) return results;
    const detail = `${busy} of ${results.length} lines were refused as busy each time; send them again`;
    throw new Minute8Problem(503, { type: BUSY, title: "Busy", detail, results });
  }

  async #call<A>(method: Method, path: string, options: Options<never>): Promise<A> {
    const repeatable =
      options.repeatable ??
      (method === "get" ||
        options.idempotencyKey !== undefined ||
        (method !== "post" && options.revision === undefined && !options.onlyNew));
    const address = this.#address(path, options);
    const request = this.#request(method, options);
    const known = method === "get" ? this.#known.get(address) : undefined;
    const headers = { ...request.headers, ...(known ? { "If-None-Match": known.etag } : {}) };
    const [response, lost] = await this.#send(address, { ...request, headers }, repeatable);
    if (response.status === 304 && known) return parsed(known.body, path) as A;
    if (response.ok) {
      const body = await response.text();
      if (response.headers.get("Content-Type")?.startsWith(NDJSON)) return body as A;
      const answer = body ? parsed(body, path) : undefined;
      // What is no JSON is not kept: it would be read again with each answer that nothing has changed.
      if (method === "get") this.#known.keep(address, response.headers.get("ETag"), body);
      return answer as A;
    }
    // An earlier try deleted it, and its answer was lost.
    if (method === "delete" && lost && response.status === 404) return undefined as A;
    throw await problemOf(response);
  }

  #address(path: string, options: Options<never>): string {
    const values = (options.path ?? {}) as Record<string, string>;
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(String(values[name] ?? "")).replaceAll("%3A", ":"),
    );
    const query = Object.entries((options.query ?? {}) as Record<string, unknown>)
      .filter(([, value]) => value !== undefined && value !== null && value !== "")
      .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`);
    return `${this.#url}${filled}${query.length ? `?${query.join("&")}` : ""}`;
  }

  #request(method: Method, options: Options<never>): RequestInit {
    const headers: Record<string, string> = { Authorization: `Bearer ${this.#key}` };
    if (options.revision !== undefined) headers["If-Match"] = `"${options.revision}"`;
    if (options.onlyNew) headers["If-None-Match"] = "*";
    if (options.idempotencyKey !== undefined) headers["Idempotency-Key"] = `"${options.idempotencyKey}"`;
    const body: unknown = options.body;
    if (body !== undefined) headers["Content-Type"] = typeof body === "string" ? NDJSON : "application/json";
    return {
      method: method.toUpperCase(),
      headers,
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      ...(options.signal ? { signal: options.signal } : {}),
    };
  }

  /** The answer, and whether the answer to an earlier try was lost on its way. */
  async #send(address: string, request: RequestInit, repeatable: boolean): Promise<[Response, boolean]> {
    let lost = false;
    for (let attempt = 0; ; attempt++) {
      const last = attempt === TRIES - 1;
      let waitS = Math.min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** attempt) * (0.5 + Math.random() / 2);
      try {
        const response = await this.#fetch(address, { ...request, signal: this.#signal(request.signal) });
        if (last || !isToBeRepeated(response, repeatable)) return [response, lost];
        lost ||= ANSWER_LOST.includes(response.status);
        waitS = Math.max(waitS, Math.min(LONGEST_WAIT_S, Number(response.headers.get("Retry-After")) || 0));
      } catch (error) {
        if (request.signal?.aborted) throw error;
        // fetch does not say whether anything was sent, so only a repeatable call is sent again.
        if (last || !repeatable) {
          throw new Unreachable(`no answer from ${address.split("?")[0]}: ${String(error)}`, { cause: error });
        }
        lost = true;
      }
      await this.#sleep(waitS);
    }
  }

  #signal(own: AbortSignal | null | undefined): AbortSignal {
    const limit = AbortSignal.timeout(this.#timeoutS * 1000);
    return own ? AbortSignal.any([own, limit]) : limit;
  }
}

/** The lists that were read lately: asked for again, one that is still the same is not sent again. Bounded to 8 MB. */
class KnownLists {
  readonly #answers = new Map<string, { etag: string; body: string }>();

  get(address: string): { etag: string; body: string } | undefined {
    return this.#answers.get(address);
  }

  /** Keep an answer whose ETag is of all of it. Pages after the first are read once. */
  keep(address: string, etag: string | null, body: string): void {
    if (!etag?.startsWith("W/") || address.includes("cursor=") || body.length > LONGEST_KNOWN) return;
    this.#answers.delete(address);
    this.#answers.set(address, { etag, body });
    const [oldest] = this.#answers.keys();
    if (this.#answers.size > MOST_KNOWN && oldest !== undefined) this.#answers.delete(oldest);
  }
}

/** What came from a gateway or a proxy instead of the API is no answer of the API. */
function parsed(body: string, path: string): unknown {
  try {
    return JSON.parse(body);
  } catch (error) {
    throw new Unreachable(`the answer to ${path} is not JSON: ${body.slice(0, 100)}`, { cause: error });
  }
}

function isToBeRepeated(response: Response, repeatable: boolean): boolean {
  // The one before is still under way, and will have an answer.
  if (response.status === 409) return response.headers.get("Retry-After") !== null;
  return response.status === 429 || (response.status >= 500 && repeatable);
}

export type { Minute8Problem };
