// Parameters that are a number or `off`. While one is off, its condition leaves the number out: a linter still reads it.
const SMALLEST = {
  apiReservedConcurrency: 1,
  executorReservedConcurrency: 1,
  maximumConcurrency: 2,
  minimumPollers: 2,
  maximumPollers: 2,
  leastUnits: 5,
  mostUnits: 5,
  warmReads: 12000,
  warmWrites: 4000,
};
// Of the account's concurrency, what an executor without its own part leaves to the others.
const LEFT_TO_OTHERS = 100;

module.exports = async ({ resolveVariable }) => {
  const valueOf = (name) => resolveVariable(`param:${name}`);
  const numbers = {};
  for (const [name, smallest] of Object.entries(SMALLEST)) {
    const value = await valueOf(name);
    numbers[name] = value === "off" ? smallest : Number(value);
  }
  // A poll that Lambda throttles counts as a receive. So the queue starts no more executors than there can be.
  const account = Number(await valueOf("accountConcurrency"));
  const reserved = await valueOf("executorReservedConcurrency");
  const most = reserved === "off" ? Math.max(account - LEFT_TO_OTHERS, Math.floor(account / 2)) : Number(reserved);
  const atOnce = Math.max(SMALLEST.maximumConcurrency, Math.min(numbers.maximumConcurrency, most));
  const isOff = (await valueOf("maximumConcurrency")) === "off";
  return { ...numbers, maximumConcurrency: atOnce, executorsAtOnce: isOff ? "off" : String(atOnce) };
};
