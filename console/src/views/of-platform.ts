/** The views of operators, loaded together. */

export { Platform } from "./platform";
export { Tenant } from "./tenant";
