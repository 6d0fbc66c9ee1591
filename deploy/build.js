// A plugin of the deployment tool: before it packages, it builds what is missing or old of the layers, the compiled
// modules and the console (scripts/build_package.py), so that `serverless deploy` works in a fresh clone.
const { spawnSync } = require("node:child_process");
const { existsSync } = require("node:fs");
const { join } = require("node:path");

const OLDEST_PYTHON = "3.11";
// What builds the console and compiles for Lambda's Python. Both are of package-lock.json.
const NODE_PACKAGES = ["node_modules/vite", "node_modules/pyodide"];

class Build {
  constructor(serverless, _options, utils) {
    this.service = serverless.service;
    this.folder = serverless.serviceDir;
    this.log = utils.log;
    this.problem = serverless.classes.Error;
    this.hooks = {
      "before:package:createDeploymentArtifacts": () => this.build(),
      "before:package:function:package": () => this.build(),
    };
  }

  build() {
    // A copy of the checkout that scripts/embedded has filled has nothing left to build, and no scripts.
    if (!existsSync(join(this.folder, "scripts", "build_package.py"))) return;
    if (!NODE_PACKAGES.every((path) => existsSync(join(this.folder, path)))) this.install();
    const platform = this.service.layers.deps.path.split("-").at(-1);
    const { jwtIssuer, otlpEndpoint } = this.service.custom;
    const params = [`jwtIssuer=${jwtIssuer}`, `otlpEndpoint=${otlpEndpoint}`];
    if (!this.run(this.python(), "-m", "scripts.build_package", platform, ...params)) {
      throw new this.problem("What Lambda needs could not be built; the lines above say why.");
    }
  }

  install() {
    this.log.notice("build: the Node packages of package-lock.json …");
    if (!this.run("npm", "ci", "--omit=dev", "--silent", "--no-fund", "--no-audit")) {
      throw new this.problem("`npm ci --omit=dev` failed: the console and the compiler of Python modules need its packages.");
    }
  }

  // A Python with pip: the checkout's own, the shell's, or a virtual environment of it that has pip.
  python() {
    const own = join(".venv", "bin", "python");
    const made = join("build", "python", "bin", "python");
    const isNew = `import sys; sys.exit(sys.version_info < (${OLDEST_PYTHON.replace(".", ", ")}))`;
    const pythons = [own, "python3", "python", made].filter((python) => this.succeeds(python, "-c", isNew));
    if (!pythons.length) {
      throw new this.problem(`Python ${OLDEST_PYTHON} or newer builds the layers, and no python3 of the PATH is.`);
    }
    const ready = pythons.find((python) => this.succeeds(python, "-m", "pip", "--version"));
    if (ready) return ready;
    if (this.succeeds(pythons[0], "-m", "venv", "--clear", join("build", "python"))) return made;
    throw new this.problem(
      `${pythons[0]} has neither pip nor venv, and the layers need pip: install python3-pip or python3-venv.`,
    );
  }

  run(command, ...args) {
    return this.start(command, args, ["ignore", "inherit", "inherit"]);
  }

  succeeds(command, ...args) {
    return this.start(command, args, "ignore");
  }

  start(command, args, stdio) {
    return spawnSync(command, args, { cwd: this.folder, stdio }).status === 0;
  }
}

module.exports = Build;
