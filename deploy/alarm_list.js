// What the engineers' dashboard lists: the alarms of alarms.yml that each stage has and that notify somebody.
module.exports = async ({ resolveVariable }) => {
  const resources = Object.values(await resolveVariable("file(./deploy/alarms.yml):Resources"));
  const listed = resources.filter(({ Condition, Properties }) => !Condition && Properties.AlarmActions);
  const arn = "arn:${AWS::Partition}:cloudwatch:${AWS::Region}:${AWS::AccountId}:alarm:";
  return { arns: JSON.stringify(listed.map(({ Properties }) => arn + Properties.AlarmName)) };
};
