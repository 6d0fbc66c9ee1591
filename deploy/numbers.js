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

module.exports = async ({ resolveVariable }) => {
  const numbers = {};
  for (const [name, smallest] of Object.entries(SMALLEST)) {
    const value = await resolveVariable(`param:${name}`);
    numbers[name] = value === "off" ? smallest : Number(value);
  }
  return numbers;
};
