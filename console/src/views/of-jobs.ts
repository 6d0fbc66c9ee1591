/** The views of jobs and runs, loaded together when the first of them is opened. */

export { Failures } from "./failures";
export { FirstSteps } from "./first-steps";
export { Job } from "./job";
export { Jobs } from "./jobs";
export { Permits } from "./permits";
export { Run } from "./run";
export { Runs } from "./runs";
export { Upcoming } from "./upcoming";
