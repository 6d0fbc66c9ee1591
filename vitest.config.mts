import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: { alias: { "minute8-client": new URL("./clients/typescript/src/index.ts", import.meta.url).pathname } },
  test: { include: ["clients/typescript/tests/*.test.ts", "console/tests/*.test.ts"], isolate: false },
});
