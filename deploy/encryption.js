// A plugin of the deployment tool: with `kmsKeyArn`, every table, queue and log group of the template is encrypted with
// that key of KMS, and the roles that read or write them may use it.
const KEY = { Ref: "kmsKeyArn" };
const withKey = (value) => ({ "Fn::If": ["HasKmsKey", value, { Ref: "AWS::NoValue" }] });
// What DynamoDB and SQS need of whoever reads and writes:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
const ACTIONS = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"];
const SERVICES = ["dynamodb", "sqs"];

const PROPERTIES = {
  "AWS::DynamoDB::Table": { SSESpecification: withKey({ SSEEnabled: true, SSEType: "KMS", KMSMasterKeyId: KEY }) },
  "AWS::SQS::Queue": { KmsMasterKeyId: withKey(KEY) },
  "AWS::Logs::LogGroup": { KmsKeyId: withKey(KEY) },
};

const POLICY = withKey({
  PolicyName: "encryption",
  PolicyDocument: {
    Version: "2012-10-17",
    Statement: [
      {
        Effect: "Allow",
        Action: ACTIONS,
        Resource: KEY,
        Condition: { StringLike: { "kms:ViaService": SERVICES.map((service) => `${service}.*.amazonaws.com*`) } },
      },
    ],
  },
});

class Encryption {
  constructor(serverless) {
    this.service = serverless.service;
    this.hooks = { "after:aws:package:finalize:mergeCustomProviderResources": () => this.encrypt() };
  }

  encrypt() {
    for (const resource of Object.values(this.service.provider.compiledCloudFormationTemplate.Resources)) {
      Object.assign(resource.Properties ?? {}, PROPERTIES[resource.Type]);
      if (resource.Type === "AWS::IAM::Role" && usesData(resource)) resource.Properties.Policies.push(POLICY);
    }
  }
}

// The canary's role only writes its log, which CloudWatch Logs encrypts by itself.
function usesData(role) {
  const statements = role.Properties.Policies.flatMap(({ PolicyDocument }) => PolicyDocument.Statement);
  return statements.some((statement) => /"(dynamodb|sqs):/.test(JSON.stringify(statement)));
}

module.exports = Encryption;
