"""What the doctor does not compare of what AWS describes, and why."""

from __future__ import annotations

from minute8.cli.doctor.settings import KINDS

# By service and operation, and the member of the answer with the resource.
DESCRIBING = {
    "AWS::SQS::Queue": ("sqs", "QueueAttributeName", ""),
    "AWS::Lambda::EventSourceMapping": ("lambda", "GetEventSourceMapping", ""),
    "AWS::Lambda::Function": ("lambda", "GetFunctionConfiguration", ""),
    "AWS::Lambda::Alias": ("lambda", "GetAlias", ""),
    "AWS::Events::Rule": ("events", "DescribeRule", ""),
    "AWS::Events::EventBus": ("events", "DescribeEventBus", ""),
    "AWS::DynamoDB::Table": ("dynamodb", "DescribeTable", "Table"),
    "AWS::Logs::LogGroup": ("logs", "DescribeLogGroups", "logGroups"),
    "AWS::CloudWatch::Alarm": ("cloudwatch", "DescribeAlarms", "MetricAlarms"),
    "AWS::CloudWatch::CompositeAlarm": ("cloudwatch", "DescribeAlarms", "CompositeAlarms"),
    "AWS::KMS::Key": ("kms", "DescribeKey", "KeyMetadata"),
    "AWS::ApiGatewayV2::Route": ("apigatewayv2", "GetRoute", ""),
    "AWS::ApiGatewayV2::Integration": ("apigatewayv2", "GetIntegration", ""),
}
# What AWS calls it -> what CloudFormation calls it.
NAMES = {
    "FunctionArn": "FunctionName",
    "KMSKeyArn": "KmsKeyArn",
    "BillingModeSummary": "BillingMode",
    "TableClassSummary": "TableClass",
    "retentionInDays": "RetentionInDays",
    "kmsKeyId": "KmsKeyId",
}
# Why -> of each type the members that are not compared.
EXCEPTIONS: dict[str, dict[str, str]] = {
    "what it is called, and when and how it was made or changed": {
        "AWS::SQS::Queue": "All ApproximateNumberOfMessages ApproximateNumberOfMessagesDelayed"
        " ApproximateNumberOfMessagesNotVisible CreatedTimestamp LastModifiedTimestamp QueueArn",
        "AWS::Lambda::EventSourceMapping": "UUID EventSourceMappingArn LastModified LastProcessingResult"
        " StateTransitionReason FilterCriteriaError",
        "AWS::Lambda::Function": "FunctionName CodeSize Description LastModified RevisionId ConfigSha256 MasterArn"
        " RuntimeVersionConfig SigningProfileVersionArn SigningJobArn",
        "AWS::Lambda::Alias": "AliasArn Name Description RevisionId",
        "AWS::Events::Rule": "Name Arn Description ManagedBy CreatedBy EventBusName",
        "AWS::Events::EventBus": "Name Arn Description CreationTime LastModifiedTime ManagedBy",
        "AWS::DynamoDB::Table": "TableName CreationDateTime TableSizeBytes ItemCount TableArn TableId RestoreSummary"
        " ArchivalSummary LatestStreamLabel LatestStreamArn",
        "AWS::Logs::LogGroup": "logGroupName creationTime metricFilterCount arn storedBytes logGroupArn"
        " inheritedProperties",
        "AWS::CloudWatch::Alarm": "AlarmName AlarmArn AlarmDescription AlarmConfigurationUpdatedTimestamp StateReason"
        " StateReasonData StateUpdatedTimestamp StateTransitionedTimestamp EvaluationState",
        "AWS::CloudWatch::CompositeAlarm": "AlarmName AlarmArn AlarmDescription AlarmConfigurationUpdatedTimestamp"
        " StateReason StateReasonData StateUpdatedTimestamp StateTransitionedTimestamp ActionsSuppressedBy"
        " ActionsSuppressedReason",
        "AWS::KMS::Key": "AWSAccountId KeyId Arn CreationDate Description KeyManager CurrentKeyMaterialId",
        "AWS::ApiGatewayV2::Route": "ApiGatewayManaged OperationName RouteId",
        "AWS::ApiGatewayV2::Integration": "ApiGatewayManaged Description IntegrationId",
    },
    "it has a check of its own": {
        "AWS::SQS::Queue": "Policy",
        "AWS::Lambda::EventSourceMapping": "FunctionArn State",
        "AWS::Lambda::Function": "FunctionArn CodeSha256 Version State StateReason StateReasonCode LastUpdateStatus"
        " LastUpdateStatusReason LastUpdateStatusReasonCode",
        "AWS::Lambda::Alias": "FunctionVersion",
        "AWS::DynamoDB::Table": "TableStatus GlobalSecondaryIndexes DeletionProtectionEnabled",
        "AWS::CloudWatch::Alarm": "StateValue",
        "AWS::CloudWatch::CompositeAlarm": "StateValue",
        "AWS::KMS::Key": "KeyState DeletionDate PendingDeletionWindowInDays ValidTo ExpirationModel",
    },
    "the runbook changes it": {
        "AWS::DynamoDB::Table": "ProvisionedThroughput OnDemandThroughput WarmThroughput",
    },
    "a change of it holds up nothing: what it encrypts stays encrypted": {
        "AWS::SQS::Queue": "SqsManagedSseEnabled KmsDataKeyReusePeriodSeconds",
        "AWS::DynamoDB::Table": "SSEDescription",
    },
    "it cannot be changed of what exists, or is of another kind of resource": {
        "AWS::SQS::Queue": "FifoQueue ContentBasedDeduplication DeduplicationScope FifoThroughputLimit",
        "AWS::Lambda::EventSourceMapping": "StartingPosition StartingPositionTimestamp ParallelizationFactor"
        " LoggingConfig Topics Queues SourceAccessConfigurations SelfManagedEventSource MaximumRecordAgeInSeconds"
        " BisectBatchOnFunctionError MaximumRetryAttempts TumblingWindowInSeconds"
        " AmazonManagedKafkaEventSourceConfig SelfManagedKafkaEventSourceConfig DocumentDBEventSourceConfig",
        "AWS::Lambda::Function": "ImageConfigResponse CapacityProviderConfig",
        "AWS::DynamoDB::Table": "AttributeDefinitions GlobalTableVersion Replicas GlobalTableWitnesses"
        " GlobalTableSettingsReplicationMode MultiRegionConsistency VectorIndexes",
        "AWS::Logs::LogGroup": "logGroupClass",
        "AWS::CloudWatch::Alarm": "EvaluationWindow WarmUpConfiguration EvaluationCriteria EvaluationInterval",
        "AWS::KMS::Key": "Origin CustomKeyStoreId CloudHsmClusterId CustomerMasterKeySpec EncryptionAlgorithms"
        " SigningAlgorithms KeyAgreementAlgorithms MultiRegionConfiguration MacAlgorithms XksKeyConfiguration",
        "AWS::ApiGatewayV2::Route": "ModelSelectionExpression RequestModels RouteResponseSelectionExpression",
        "AWS::ApiGatewayV2::Integration": "ContentHandlingStrategy IntegrationResponseSelectionExpression"
        " PassthroughBehavior TemplateSelectionExpression RequestTemplates ConnectionType IntegrationMethod",
    },
    "it loses and hides nothing": {
        "AWS::Events::EventBus": "LogConfig",
        "AWS::Logs::LogGroup": "dataProtectionStatus deletionProtectionEnabled bearerTokenAuthenticationEnabled",
        "AWS::CloudWatch::CompositeAlarm": "ActionsSuppressorWaitPeriod ActionsSuppressorExtensionPeriod",
    },
}
# Types that are not compared, and why.
TYPES = {
    "AWS::ApiGatewayV2::Api": "the check `api` calls it",
    "AWS::ApiGatewayV2::Stage": "its limits may be raised by hand: docs/capacity.md",
    "AWS::ApplicationAutoScaling::ScalableTarget": "the runbook changes it",
    "AWS::ApplicationAutoScaling::ScalingPolicy": "the runbook changes it",
    "AWS::CloudWatch::Dashboard": "people may arrange it",
    "AWS::IAM::Policy": "the check `policies`",
    "AWS::IAM::Role": "the check `policies`",
    "AWS::Lambda::EventInvokeConfig": "nothing that Minute8 needs is invoked by it: ticks are due again",
    "AWS::Lambda::LayerVersion": "a version cannot be changed, and functions name theirs",
    "AWS::Lambda::Permission": "the checks `rule`, `notify rule` and `api`",
    "AWS::Lambda::Version": "a version cannot be changed",
    "AWS::Logs::QueryDefinition": "it is only offered",
    "AWS::S3::Bucket": "it is the deployer's",
    "AWS::S3::BucketPolicy": "it is the deployer's",
    "AWS::SQS::QueuePolicy": "the check `policies`",
}


def excepted(kind: str) -> set[str]:
    """The members of a type that are not compared."""
    return {name for of_kind in EXCEPTIONS.values() for name in of_kind.get(kind, "").split()}


def compared(kind: str) -> set[str]:
    """The properties of a type that are compared, by CloudFormation's names."""
    return {*KINDS[kind].defaults}
