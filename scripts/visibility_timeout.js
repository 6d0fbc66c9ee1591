// How long a message stays hidden: a fifth longer than the executor may run, as AWS wants it above the function's timeout.
module.exports = async ({ resolveVariable }) =>
  Math.ceil(Number(await resolveVariable("param:executorTimeoutS")) * 1.2);
