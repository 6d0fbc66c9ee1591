// The parameters of deploy/parameters.yml for serverless.yml: the defaults, and those of the template. There, the default
// of each is its value in this deployment, so osls passes none; who deploys a released template gives them to
// CloudFormation.
const OFF = "off";
const LOOPBACK = "loopback";
// Of the account's concurrency, what an executor without its own part leaves to the others.
const LEFT_TO_OTHERS = 100;
const LEAST_MAPPING = 2;

const read = (resolveVariable, part) => resolveVariable(`file(./deploy/parameters.yml):${part}`);

async function defaults({ resolveVariable }) {
  const declared = { ...(await read(resolveVariable, "Parameters")), ...(await read(resolveVariable, "OfTheTool")) };
  return Object.fromEntries(Object.entries(declared).map(([name, { Default }]) => [name, Default]));
}

async function resources({ resolveVariable }) {
  const declared = await read(resolveVariable, "Parameters");
  const values = {};
  for (const name of Object.keys(declared)) values[name] = String(await resolveVariable(`param:${name}`));
  values.maximumConcurrency = executorsAtOnce(values);
  const Parameters = {};
  for (const [name, declaration] of Object.entries(declared)) {
    const isNumber = typeof declaration.Default === "number";
    const Default = isNumber ? Number(values[name]) : values[name];
    Parameters[name] = { ...declaration, Type: isNumber ? "Number" : "String", Default };
    // Of the embedded AWS's stages alone.
    if (values[name] === LOOPBACK) Parameters[name].AllowedValues = [LOOPBACK];
  }
  return { Parameters };
}

// A poll that Lambda throttles counts as a receive. So the queue starts no more executors than there can be.
function executorsAtOnce({ maximumConcurrency, accountConcurrency, executorReservedConcurrency }) {
  if (maximumConcurrency === OFF) return OFF;
  const account = Number(accountConcurrency);
  const shared = Math.max(account - LEFT_TO_OTHERS, Math.floor(account / 2));
  const most = executorReservedConcurrency === OFF ? shared : Number(executorReservedConcurrency);
  return String(Math.max(LEAST_MAPPING, Math.min(Number(maximumConcurrency), most)));
}

module.exports = { defaults, resources };
