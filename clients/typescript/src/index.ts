/** The client of Minute8's HTTP API.

    import { Minute8 } from "minute8-client";

    const minute8 = new Minute8({ url: "https://….execute-api.eu-west-1.amazonaws.com", key: "m8_…" });
    const { jobs } = await minute8.get("/v1/jobs", { query: { state: "active" } });
*/

import type { components } from "./api.js";

export type { components, paths } from "./api.js";
export { type Answer, Minute8, type Options, type PathsOf, type Settings } from "./client.js";
export { type FieldProblem, Minute8Problem, type ProblemName, problemOf, Unreachable } from "./problems.js";

/** The shapes of requests and answers, by the names of the OpenAPI document. */
export type Shapes = components["schemas"];
