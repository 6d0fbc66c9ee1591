// The functions' code for spans is in their package only where a collector gets some.
const FILES = {
  room: "common/tracing/*.py",
  executor: "executor/run_spans.py",
  scheduler: "scheduler/tick_spans.py",
};
const WITH_COMPILED = {
  room: "!common/tracing/**",
  executor: "!executor/{run_spans.py,__pycache__/run_spans.*}",
  scheduler: "!scheduler/{tick_spans.py,__pycache__/tick_spans.*}",
};

module.exports = async ({ resolveVariable }) =>
  (await resolveVariable("param:otlpEndpoint")) === "off" ? WITH_COMPILED : FILES;
