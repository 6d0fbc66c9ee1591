// A plugin of the deployment tool: each deployment publishes a version of every function, and moves the alias `live` to it.
// Mappings, rules and the API call the alias. So code, layers and configuration of a function change in one step
// (docs/decisions/platform.md#0026-published-versions).
const { createHash } = require("node:crypto");
const { readFileSync } = require("node:fs");

const ALIAS = "live";
// What a version does not hold, or what differs between two equal deployments.
const NOT_OF_A_VERSION = ["Code", "ReservedConcurrentExecutions", "RecursiveLoop", "Tags"];

class Live {
  constructor(serverless) {
    this.service = serverless.service;
    this.provider = serverless.getProvider("aws");
    this.hooks = {
      "before:package:compileFunctions": () => this.nameAliases(),
      "after:aws:package:finalize:mergeCustomProviderResources": () => this.addVersions(),
    };
  }

  // All functions but the canary: a job calls that one by its name, and it has neither layer nor settings.
  functions() {
    return this.service.getAllFunctions().filter((name) => name !== "canary");
  }

  nameAliases() {
    for (const name of this.functions()) {
      const logicalId = `${name[0].toUpperCase()}${name.slice(1)}Live`;
      this.service.getFunction(name).targetAlias = { name: ALIAS, logicalId };
    }
  }

  addVersions() {
    const template = this.service.provider.compiledCloudFormationTemplate;
    const deployment = this.digest(template);
    for (const name of this.functions()) {
      const functionId = this.provider.naming.getLambdaLogicalId(name);
      const { Condition, Properties } = template.Resources[functionId];
      // It differs, so Lambda publishes a version of this function, too.
      Properties.Environment.Variables.DEPLOYMENT = deployment;
      const { logicalId } = this.service.getFunction(name).targetAlias;
      const versionId = `${logicalId}${deployment}`;
      const resource = (Type, more) => ({ Type, ...(Condition && { Condition }), ...more });
      template.Resources[versionId] = resource("AWS::Lambda::Version", {
        // Kept for `make rollback`; not if the deployment fails that made it.
        DeletionPolicy: "RetainExceptOnCreate",
        Properties: { FunctionName: { Ref: functionId }, Description: deployment },
      });
      template.Resources[logicalId] = resource("AWS::Lambda::Alias", {
        // What a new version writes, the new executor reads.
        ...(name !== "executor" && { DependsOn: ["ExecutorLive"] }),
        Properties: {
          FunctionName: { Ref: functionId },
          FunctionVersion: { "Fn::GetAtt": [versionId, "Version"] },
          Name: ALIAS,
        },
      });
    }
    template.Outputs.Deployment = { Value: deployment };
  }

  // Of all that versions hold: the archives, the layers' archives, the functions' properties, the conditions, and the
  // values of the parameters that these name.
  digest(template) {
    const hash = createHash("sha256");
    const archives = this.functions().map((name) => this.archiveOf(name));
    const layers = Object.keys(this.service.layers).map((name) => this.provider.resolveLayerArtifactName(name));
    for (const path of [...new Set([...archives, ...layers])].sort()) hash.update(readFileSync(path));
    const functions = this.functions().map((name) => {
      const { Properties } = template.Resources[this.provider.naming.getLambdaLogicalId(name)];
      const kept = Object.entries(Properties).filter(([key]) => !NOT_OF_A_VERSION.includes(key));
      return [name, kept.sort()];
    });
    const held = JSON.stringify([functions, template.Conditions]);
    const named = Object.entries(template.Parameters).filter(([name]) => held.includes(`{"Ref":"${name}"}`));
    hash.update(JSON.stringify([held, named.map(([name, { Default }]) => [name, Default])]));
    return hash.digest("hex").slice(0, 12);
  }

  archiveOf(name) {
    return this.service.getFunction(name).package?.artifact ?? this.service.package.artifact;
  }
}

module.exports = Live;
