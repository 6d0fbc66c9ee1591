// A stack of CDK whose schedules run at Minute8: `npx cdk synth --app "node cdk.js"`.
const {
  App,
  Stack,
  TimeZone,
  aws_lambda: lambda,
  aws_scheduler: scheduler,
  aws_scheduler_targets: targets,
} = require("aws-cdk-lib");

class Jobs extends Stack {
  constructor(scope, id) {
    super(scope, id);
    this.addTransform("Minute8");
    const report = new lambda.Function(this, "Report", {
      runtime: lambda.Runtime.PYTHON_3_13,
      handler: "index.handler",
      code: lambda.Code.fromInline("def handler(event, context):\n    return event\n"),
    });
    const billing = new scheduler.ScheduleGroup(this, "Billing", { scheduleGroupName: "billing" });
    new scheduler.Schedule(this, "Nightly", {
      schedule: scheduler.ScheduleExpression.cron({ minute: "0", hour: "3", timeZone: TimeZone.EUROPE_PARIS }),
      scheduleGroup: billing,
      target: new targets.LambdaInvoke(report, {
        input: scheduler.ScheduleTargetInput.fromObject({ n: 1 }),
        retryAttempts: 3,
      }),
    });
  }
}

new Jobs(new App(), "Jobs");
