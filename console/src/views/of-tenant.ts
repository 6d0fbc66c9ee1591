/** What belongs to a tenant beside its jobs, loaded together when the first of them is opened. */

export { Api } from "./api";
export { Audit } from "./audit";
export { Calendars } from "./calendars";
export { Keys } from "./keys";
export { Quota } from "./quota";
export { Secrets } from "./secrets";
export { Subscriptions } from "./subscriptions";
