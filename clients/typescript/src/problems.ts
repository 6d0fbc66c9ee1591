/** The API's refusals as errors. Programs can branch on `name`, which is stable. */

const TYPE = "urn:minute8:problem:";

/** One thing that is wrong with a request. */
export interface FieldProblem {
  field: string;
  message: string;
  position?: number | null;
  value?: string | null;
  accepted?: string | null;
}

/** The names of problems that the API documents; a newer API may have more. */
export type ProblemName =
  | "invalid-input"
  | "malformed-json"
  | "unauthenticated"
  | "forbidden"
  | "tenant-suspended"
  | "quota-exceeded"
  | "not-found"
  | "no-such-route"
  | "method-not-allowed"
  | "conflict"
  | "already-exists"
  | "request-under-way"
  | "revision-mismatch"
  | "too-large"
  | "unsupported-media-type"
  | "rate-exceeded"
  | "idempotency-key-reused"
  | "bulk-refused"
  | "internal"
  | "unfinished"
  | "busy"
  | "issuer-unreachable"
  | (string & {});

/** The API refused: RFC 9457, as it came. */
export class Minute8Problem extends Error {
  override readonly name: ProblemName;
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  /** What is wrong with which field. */
  readonly errors: FieldProblem[];
  readonly requestId: string;
  /** All fields of the document. */
  readonly document: Record<string, unknown>;

  constructor(status: number, document: Record<string, unknown>) {
    const title = text(document.title);
    const detail = text(document.detail) || text(document.message);
    super(detail || title || `HTTP ${status}`);
    this.status = status;
    this.document = document;
    this.title = title;
    this.detail = detail;
    this.name = text(document.type).replace(TYPE, "");
    this.errors = Array.isArray(document.errors) ? (document.errors as FieldProblem[]) : [];
    this.requestId = text(document.request_id);
  }

  /** The current revision, of a `revision-mismatch`. */
  get currentRevision(): number | undefined {
    const revision = this.document.current_revision;
    return typeof revision === "number" ? revision : undefined;
  }
}

/** No answer came from the API. */
export class Unreachable extends Error {
  override readonly name = "unreachable";
}

/** The problem of a refusal, also of one from a gateway that writes no problem documents. */
export async function problemOf(response: Response): Promise<Minute8Problem> {
  const body = await response.text();
  let document: unknown;
  try {
    document = JSON.parse(body);
  } catch {
    document = undefined;
  }
  if (typeof document !== "object" || document === null || Array.isArray(document)) {
    document = { title: response.statusText, detail: body.slice(0, 500) };
  }
  return new Minute8Problem(response.status, document as Record<string, unknown>);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
