#include "k8s/training_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::k8s {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Job(const std::string& more) {
  return R"({"kind":"TrainingJob","metadata":{"name":"j"},"spec":{"statement":"SELECT 1",)"
         R"("source":{"secretName":"db"})" +
         (more.empty() ? "" : "," + more) + "}}";
}

std::vector<std::string> ErrorsOf(const std::string& json) {
  std::vector<std::string> messages;
  const Result<TrainingJobSpec> spec = ParseTrainingJobSpec(json);
  for (const Diagnostic& each : spec.status().diagnostics()) {
    messages.push_back(each.message);
  }
  return messages;
}

TEST(TrainingJob, WhatIsNotSaidHasItsDefault) {
  const TrainingJobSpec spec = ParseTrainingJobSpec(Job("")).value();
  EXPECT_EQ(spec.statement, "SELECT 1");
  EXPECT_EQ(spec.source_secret, "db");
  EXPECT_EQ(spec.source_key, "source");
  EXPECT_EQ(spec.workers, ProcessesSpec());
  EXPECT_EQ(spec.priority, 0);
  EXPECT_FALSE(spec.suspend);
  EXPECT_FALSE(spec.active_deadline_seconds.has_value());
}

TEST(TrainingJob, AnAbsentMemberAndANullAreTheSame) {
  EXPECT_EQ(ParseTrainingJobSpec(Job(R"("workers":null,"suspend":null,"template":null)")).value(),
            ParseTrainingJobSpec(Job("")).value());
}

TEST(TrainingJob, EveryFieldIsReadAndWrittenBack) {
  const std::string json = Job(
      R"("master":{"template":"small"},)"
      R"("workers":{"min":2,"max":8,"resources":{"requests":{"cpu":2,"memory":"1Gi"},)"
      R"("limits":{"memory":"2Gi","nvidia.com/gpu":"1"}},"priority":"0.5","template":"spot"},)"
      R"("servers":{"max":2,"priority":"high"},"priority":-7,"template":"all","image":"r/s@sha256:1",)"
      R"("imagePullPolicy":"Never","volumes":[{"claimName":"c","mountPath":"/data","subPath":"m",)"
      R"("readOnly":true}],"suspend":true,"activeDeadlineSeconds":60,"ttlSecondsAfterFinished":0)");
  const TrainingJobSpec spec = ParseTrainingJobSpec(json).value();
  EXPECT_EQ(spec.master.template_name, "small");
  EXPECT_EQ(spec.workers.min, 2U);
  EXPECT_EQ(spec.workers.max, 8U);
  EXPECT_EQ(spec.workers.resources.requests.at("cpu").ToString(), "2");
  EXPECT_EQ(spec.workers.resources.limits.at("nvidia.com/gpu").ToString(), "1");
  EXPECT_EQ(spec.workers.priority, (PodPriority{true, 0.5}));
  EXPECT_EQ(spec.servers.priority, (PodPriority{true, 1}));
  EXPECT_EQ(spec.priority, -7);
  EXPECT_EQ(spec.volumes, (std::vector<PodVolume>{{"c", "/data", "m", true}}));
  EXPECT_EQ(spec.active_deadline_seconds, 60);
  EXPECT_EQ(spec.ttl_seconds_after_finished, 0);
  EXPECT_EQ(ParseTrainingJobSpec(BuildTrainingJob("team", "j", spec)).value(), spec);
}

TEST(TrainingJob, WhatIsCreatedSaysNothingThatNobodyAskedFor) {
  TrainingJobSpec spec;
  spec.statement = "SELECT 1";
  spec.source_secret = "db";
  EXPECT_EQ(BuildTrainingJob("team", "j", spec),
            R"({"apiVersion":"training.sluice/v1alpha1","kind":"TrainingJob",)"
            R"("metadata":{"name":"j","namespace":"team"},)"
            R"("spec":{"statement":"SELECT 1","source":{"secretName":"db","key":"source"}}})");
}

TEST(TrainingJob, AMistakeIsToldWithItsField) {
  const struct {
    const char* fields;
    const char* message;
  } cases[] = {
      {R"("workers":7)", "spec.workers: an object is expected"},
      {R"("workers":{"min":"2"})", "spec.workers.min: a whole number is expected"},
      {R"("workers":{"min":1.5})", "spec.workers.min: a whole number is expected"},
      {R"("workers":{"min":0})", "spec.workers.min: 0 does not lie between 1 and 1024"},
      {R"("workers":{"max":1025})", "spec.workers.max: 1025 does not lie between 1 and 1024"},
      {R"("workers":{"min":5,"max":2})", "spec.workers.min: 5 is more than spec.workers.max, 2"},
      {R"("servers":{"min":-1})", "spec.servers.min: -1 does not lie between 0 and 1024"},
      {R"("workers":{"resources":{"requests":{"memory":"4GB"}}})",
       "spec.workers.resources.requests.memory: '4GB' is not a Kubernetes quantity"},
      {R"("workers":{"resources":{"requests":{"cpu":"2"},"limits":{"cpu":"1"}}})",
       "spec.workers.resources.requests.cpu: 2 is more than the limit, 1"},
      {R"("workers":{"priority":"urgent"})",
       "spec.workers.priority: 'urgent' is neither high nor low nor a share such as 0.5"},
      {R"("workers":{"priority":"1.5"})",
       "spec.workers.priority: '1.5' is neither high nor low nor a share such as 0.5"},
      {R"("workers":{"priority":"nan"})",
       "spec.workers.priority: 'nan' is neither high nor low nor a share such as 0.5"},
      {R"("priority":1001)", "spec.priority: 1001 does not lie between -1000 and 1000"},
      {R"("imagePullPolicy":"always")",
       "spec.imagePullPolicy: 'always' is not one of Always, IfNotPresent, Never"},
      {R"("volumes":{})", "spec.volumes: a list is expected"},
      {R"("volumes":[1])", "spec.volumes[0]: an object is expected"},
      {R"("volumes":[{"mountPath":"/d"}])",
       "spec.volumes[0].claimName: is missing: the name of a PersistentVolumeClaim"},
      {R"("volumes":[{"claimName":"c","mountPath":"d"}])",
       "spec.volumes[0].mountPath: 'd' does not begin with /"},
      {R"("suspend":"yes")", "spec.suspend: true or false is expected"},
      {R"("activeDeadlineSeconds":0)", "spec.activeDeadlineSeconds: 0 is less than 1"},
      {R"("ttlSecondsAfterFinished":-1)", "spec.ttlSecondsAfterFinished: -1 is less than 0"},
      {R"("template":7)", "spec.template: a text is expected"},
  };
  for (const auto& each : cases) {
    EXPECT_THAT(ErrorsOf(Job(each.fields)), ElementsAre(HasSubstr(each.message))) << each.fields;
  }
}

TEST(TrainingJob, AllMistakesAreToldAtOnce) {
  EXPECT_THAT(ErrorsOf(R"({"spec":{"workers":{"min":3,"max":1},"priority":"high"}})"),
              ElementsAre(HasSubstr("spec.statement: is missing"),
                          HasSubstr("spec.source.secretName: is missing"),
                          HasSubstr("spec.workers.min"), HasSubstr("spec.priority")));
  EXPECT_THAT(ErrorsOf("{}"), ElementsAre("spec: an object is expected"));
  EXPECT_THAT(ErrorsOf("[]"), ElementsAre(HasSubstr("not an object")));
}

TEST(TrainingJob, OfAWrongSpecWhatIsRightHolds) {
  const TrainingJobSpec before =
      ParseTrainingJobSpec(Job(R"("workers":{"min":2,"max":4},"priority":5)")).value();
  Status mistakes;
  const TrainingJobSpec now = HoldingSpec(
      Job(R"("workers":{"min":2,"max":1},"suspend":true,"priority":"high","activeDeadlineSeconds":9)"),
      before, &mistakes);
  EXPECT_EQ(now.workers, before.workers);
  EXPECT_EQ(now.priority, 5);
  EXPECT_TRUE(now.suspend);
  EXPECT_EQ(now.active_deadline_seconds, 9);
  ASSERT_EQ(mistakes.diagnostics().size(), 2U);
  EXPECT_EQ(mistakes.diagnostics()[0].message,
            "spec.workers.min: 2 is more than spec.workers.max, 1");
  const TrainingJobSpec first =
      HoldingSpec(Job(R"("workers":{"min":2,"max":1},"suspend":true)"), std::nullopt, &mistakes);
  EXPECT_EQ(first.workers, ProcessesSpec());
  EXPECT_TRUE(first.suspend);
  EXPECT_EQ(HoldingSpec("[]", before, &mistakes), before);
}

TEST(TrainingJob, IsBegunByWhoClaimsItFirst) {
  const Object fresh =
      ReadObject(BuildTrainingJob("team", "nightly", {}, {{"a", "b"}}), "a TrainingJob").value();
  EXPECT_EQ(fresh.labels.at("a"), "b");
  EXPECT_EQ(ClaimOf(fresh), "");
  const Object ours = ReadObject(Claim(fresh, "", "us").value(), "a TrainingJob").value();
  EXPECT_EQ(ClaimOf(ours), "us");
  EXPECT_EQ(Claim(ours, "", "them").value(), ours.json) << "somebody else was faster";
  const Object theirs = ReadObject(Claim(ours, "us", "them").value(), "a TrainingJob").value();
  EXPECT_EQ(ClaimOf(theirs), "them") << "we have ended before it had begun";
}

}  // namespace
}  // namespace sluice::k8s
