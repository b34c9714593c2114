#include <fmt/core.h>
#include <gmock/gmock.h>

#include <csignal>

#include "tests/process/pods_fixture.h"

// Jobs requested through Kubernetes.
namespace sluice::executor {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Without a client of the gateway.
TEST_F(Pods, ATrainingJobThatSomebodyCreatesTrains) {
  CreateTrainingJob("nightly", TrainText("m", "train.epoch=4, engine.seed=5"));
  EXPECT_TRUE(
      Eventually([&] { return k8s::Holds(StatusOf("nightly"), k8s::kConditionComplete); }, 120));
  const k8s::TrainingJobStatus told = StatusOf("nightly");
  EXPECT_EQ(told.job, 1);
  EXPECT_EQ(told.model, "m");
  EXPECT_EQ(told.most_workers, 2U);
  EXPECT_NE(told.ended, "");
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kSucceeded);
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 4 * kRowsTrained);
  EXPECT_TRUE(Eventually([&] { return kubelet_->Count(k8s::kPods) == 0; }));
  EXPECT_EQ(kubelet_->Count(k8s::kTrainingJobs), 1U);
}

// Boosted trees train in the gateway's process, where no master writes the status.
TEST_F(Pods, ATrainingJobOfTreesEndsToo) {
  CreateTrainingJob("trees",
                    "SELECT a, b, y FROM points TO TRAIN xgboost.gbtree WITH "
                    "objective='binary:logistic', train.num_boost_round=3 LABEL y INTO m");
  ASSERT_TRUE(
      Eventually([&] { return k8s::Holds(StatusOf("trees"), k8s::kConditionComplete); }, 120));
  const k8s::TrainingJobStatus told = StatusOf("trees");
  EXPECT_EQ(told.job, 1);
  EXPECT_EQ(told.model, "m");
  EXPECT_EQ(told.version, 1);
  EXPECT_NE(told.ended, "");
  EXPECT_FALSE(k8s::Holds(told, k8s::kConditionQueued));
  EXPECT_EQ(kubelet_->Count(k8s::kPods), 0U);
}

TEST_F(Pods, ATrainingJobWithAWrongStatementSaysWhere) {
  CreateTrainingJob("wrong", "SELECT a, b, y FROM points\nTO TRAIN DNNClassifier LABEL z INTO m");
  EXPECT_TRUE(Eventually([&] { return k8s::Holds(StatusOf("wrong"), k8s::kConditionFailed); }, 60));
  std::string message;
  for (const k8s::Condition& condition : StatusOf("wrong").conditions) {
    message += condition.type == k8s::kConditionFailed ? condition.message : "";
  }
  EXPECT_THAT(message, HasSubstr("TO TRAIN DNNClassifier LABEL z INTO m"));
  EXPECT_THAT(message, HasSubstr("^"));
  EXPECT_THAT(catalog_->jobs().List().value(), IsEmpty());
  EXPECT_EQ(kubelet_->Count(k8s::kPods), 0U);
}

// `kubectl delete tj`, even when the master has just died.
TEST_F(Pods, ATrainingJobThatIsDeletedIsCancelled) {
  CreateTrainingJob("nightly", TrainText("m", "train.epoch=100000"));
  ASSERT_TRUE(Eventually([&] { return Count(1, "epoch_done") >= 1; }, 120));
  EXPECT_TRUE(k8s::Holds(StatusOf("nightly"), k8s::kConditionRunning) ||
              Eventually([&] { return k8s::Holds(StatusOf("nightly"), k8s::kConditionRunning); }));
  const std::vector<std::string> masters = kubelet_->Running("master");
  ASSERT_EQ(masters.size(), 1U);
  kubelet_->Kill(masters[0]);
  k8s::DeleteAll(kubelet_->client(),
                 {{k8s::kTrainingJobs, kubelet_->namespace_name(), "nightly", "", 1}}, {});
  EXPECT_TRUE(Eventually(
      [&] { return catalog_->jobs().Find(1)->state == catalog::JobState::kCancelled; }, 60))
      << catalog_->jobs().Find(1)->error;
  EXPECT_TRUE(Eventually([&] { return kubelet_->Count(k8s::kPods) == 0; }, 60));
  EXPECT_EQ(kubelet_->Count(k8s::kServices), 0U);
}

// While no gateway ran to report it.
TEST_F(Pods, AJobWhoseTrainingJobWasDeletedMeanwhileIsCancelled) {
  catalog::Job job;
  job.kind = "train";
  job.runner = {fmt::format("pods/{}/gone", kubelet_->namespace_name()), 1, 0, 1};
  ASSERT_EQ(catalog_->jobs().Create(job).value(), 1);
  job.runner.place = "pods/another/gone";
  ASSERT_EQ(catalog_->jobs().Create(job).value(), 2);
  cluster_.reset();
  StartGateway();
  EXPECT_TRUE(
      Eventually([&] { return catalog_->jobs().Find(1)->state == catalog::JobState::kCancelled; }));
  EXPECT_THAT(catalog_->jobs().Find(1)->error, HasSubstr("objects in Kubernetes were deleted"));
  EXPECT_EQ(catalog_->jobs().Find(2)->state, catalog::JobState::kRunning);
}

// `kubectl patch tj`: suspends to a folder of checkpoints, and resumes from there, to the same
// bits.
TEST_F(Pods, ASuspendedTrainingJobFreesItsPodsAndGoesOn) {
  const std::string attributes =
      "train.epoch=30, engine.seed=5, engine.num_workers=2, engine.max_workers=2, engine.num_ps=2, "
      "engine.sync=true";
  ASSERT_NO_FATAL_FAILURE(CreateJobWithCheckpoints("nightly", attributes));
  ASSERT_TRUE(Eventually([&] { return Count(1, "epoch_done") >= 1; }, 120))
      << ConditionsOf("nightly");
  PatchTrainingJob("nightly", R"({"spec":{"suspend":true}})");
  ASSERT_TRUE(
      Eventually([&] { return k8s::Holds(StatusOf("nightly"), k8s::kConditionSuspended); }, 90))
      << ::testing::PrintToString(Events(1));
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kSuspended);
  EXPECT_GE(Count(1, "checkpoint_written"), 1);
  EXPECT_TRUE(Eventually([&] { return kubelet_->Count(k8s::kPods) == 0; }));
  EXPECT_FALSE(k8s::Holds(StatusOf("nightly"), k8s::kConditionRunning));
  EXPECT_EQ(StatusOf("nightly").running_workers, 0U);
  // The next gateway does not begin it either.
  cluster_.reset();
  StartGateway();
  EXPECT_EQ(kubelet_->Count(k8s::kPods), 0U);
  PatchTrainingJob("nightly", R"({"spec":{"suspend":false}})");
  ASSERT_TRUE(
      Eventually([&] { return k8s::Holds(StatusOf("nightly"), k8s::kConditionComplete); }, 120))
      << catalog_->jobs().Find(1)->error << ::testing::PrintToString(Events(1));
  EXPECT_FALSE(k8s::Holds(StatusOf("nightly"), k8s::kConditionSuspended));
  EXPECT_EQ(Count(1, "job_resumed"), 1);
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 30 * kRowsTrained);
  ASSERT_TRUE(TrainHere("u", attributes).ok());
  EXPECT_EQ(Sha("m"), Sha("u"));
}

// Where kubelets say nothing of the ends of its servers, whose names the next ones would have.
TEST_F(Pods, AJobIsResumedThoughItsPodsHaveNotEnded) {
  ASSERT_NO_FATAL_FAILURE(
      CreateJobWithCheckpoints("nightly",
                               "train.epoch=60, engine.seed=5, engine.num_workers=2, "
                               "engine.max_workers=2, engine.num_ps=2"));
  ASSERT_TRUE(Eventually([&] { return Count(1, "epoch_done") >= 1; }, 120))
      << ConditionsOf("nightly");
  kubelet_->EndLate(std::chrono::seconds(40));
  PatchTrainingJob("nightly", R"({"spec":{"suspend":true}})");
  ASSERT_TRUE(
      Eventually([&] { return k8s::Holds(StatusOf("nightly"), k8s::kConditionSuspended); }, 90))
      << ::testing::PrintToString(Events(1));
  PatchTrainingJob("nightly", R"({"spec":{"suspend":false}})");
  ASSERT_TRUE(Eventually([&] { return Count(1, "job_resumed") == 1; }, 60));
  kubelet_->EndLate(std::chrono::seconds(0));
  ASSERT_TRUE(Eventually([&] { return catalog::HasEnded(catalog_->jobs().Find(1)->state); }, 120))
      << ::testing::PrintToString(Events(1));
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kSucceeded)
      << catalog_->jobs().Find(1)->error << ::testing::PrintToString(Events(1));
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 60 * kRowsTrained);
}

// They have the numbers of the servers that the job has now.
TEST_F(Pods, AResumedJobsNextMasterLeavesThePodsOfTheEarlierRunAlone) {
  ASSERT_NO_FATAL_FAILURE(
      CreateJobWithCheckpoints("nightly",
                               "train.epoch=60, engine.seed=5, engine.num_workers=2, "
                               "engine.max_workers=2, engine.num_ps=2"));
  ASSERT_TRUE(Eventually([&] { return Count(1, "epoch_done") >= 1; }, 120))
      << ConditionsOf("nightly");
  kubelet_->EndLate(std::chrono::seconds(600));
  PatchTrainingJob("nightly", R"({"spec":{"suspend":true}})");
  ASSERT_TRUE(
      Eventually([&] { return k8s::Holds(StatusOf("nightly"), k8s::kConditionSuspended); }, 90))
      << ::testing::PrintToString(Events(1));
  const std::vector<std::string> left = kubelet_->Running("ps");
  EXPECT_EQ(left.size(), 2U);
  for (const std::string& server : left) {
    kill(kubelet_->ProcessId(server).value(), SIGSTOP);  // or it would end by itself
  }
  PatchTrainingJob("nightly", R"({"spec":{"suspend":false}})");
  ASSERT_TRUE(Eventually([&] { return Count(1, "job_resumed") == 1; }, 60));
  const int done = Count(1, "epoch_done");
  ASSERT_TRUE(Eventually([&] { return Count(1, "epoch_done") > done; }, 60));
  const std::vector<std::string> masters = kubelet_->Running("master");
  ASSERT_FALSE(masters.empty());
  EXPECT_TRUE(kubelet_->Kill(masters.back()));
  ASSERT_TRUE(Eventually([&] { return Count(1, "master_took_over") >= 1; }, 60));
  for (const std::string& server : left) {
    EXPECT_TRUE(kubelet_->Kill(server));
  }
  kubelet_->EndLate(std::chrono::seconds(0));
  ASSERT_TRUE(Eventually([&] { return catalog::HasEnded(catalog_->jobs().Find(1)->state); }, 120))
      << ::testing::PrintToString(Events(1));
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kSucceeded)
      << catalog_->jobs().Find(1)->error << ::testing::PrintToString(Events(1));
  EXPECT_EQ(Count(1, "master_took_over"), 1) << ::testing::PrintToString(Events(1));
  EXPECT_EQ(Count(1, "server_lost"), 0) << ::testing::PrintToString(Events(1));
  EXPECT_EQ(Count(1, "worker_lost"), 0) << ::testing::PrintToString(Events(1));
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 60 * kRowsTrained);
}

// A controller suspends a job for another one, with a reason, and lets it go on.
TEST_F(Pods, AJobThatAControllerSuspendsSaysWhyAndGoesOn) {
  ASSERT_NO_FATAL_FAILURE(
      CreateJobWithCheckpoints("nightly",
                               "train.epoch=300, engine.seed=5, engine.num_workers=2, "
                               "engine.max_workers=2, engine.num_ps=1"));
  ASSERT_TRUE(Eventually([&] { return Count(1, "epoch_done") >= 1; }, 120))
      << ConditionsOf("nightly");
  EXPECT_TRUE(Eventually([&] { return StatusOf("nightly").can_suspend; }));
  GrantTrainingJob("nightly", k8s::Grant{0, {}, {}, "suspended: another one comes first", true});
  ASSERT_TRUE(
      Eventually([&] { return k8s::Holds(StatusOf("nightly"), k8s::kConditionSuspended); }, 90))
      << ::testing::PrintToString(Events(1));
  EXPECT_TRUE(Eventually([&] { return kubelet_->Count(k8s::kPods) == 0; }));
  EXPECT_EQ(Count(1, "worker_drained"), 0) << "the checkpoint was written with all of them";
  RecordingSink shown;
  Context context{*source_, *catalog_, "tester", "SHOW JOBS", {}, cluster_.get()};
  ASSERT_TRUE(ShowJobs({}, context, shown).ok());
  EXPECT_EQ(std::get<std::string>(shown.Cell("place")), "none: suspended: another one comes first");
  GrantTrainingJob("nightly", k8s::Grant{2, {}, {}, "there is room"});
  ASSERT_TRUE(
      Eventually([&] { return k8s::Holds(StatusOf("nightly"), k8s::kConditionComplete); }, 120))
      << catalog_->jobs().Find(1)->error << ::testing::PrintToString(Events(1));
  EXPECT_EQ(Count(1, "job_resumed"), 1);
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 300 * kRowsTrained);
}

// Changes to it while it runs: a grant, `kubectl scale`, a deadline.
TEST_F(Pods, ATrainingJobIsScaledAndHasADeadline) {
  CreateTrainingJob("nightly", TrainText("m", "train.epoch=100000"));
  ASSERT_TRUE(Eventually([&] { return Count(1, "epoch_done") >= 1; }, 120));
  PatchTrainingJob("nightly", R"({"spec":{"suspend":true}})");
  const auto refused = [&] {
    for (const k8s::Condition& condition : StatusOf("nightly").conditions) {
      if (condition.type == k8s::kConditionSuspended) {
        return condition.status + " " + condition.reason + " " + condition.message;
      }
    }
    return std::string();
  };
  EXPECT_TRUE(Eventually([&] { return !refused().empty(); }));
  EXPECT_THAT(refused(), HasSubstr("False Refused the statement has no engine.checkpoint_dir"));
  PatchTrainingJob("nightly", R"({"spec":{"suspend":false}})");
  EXPECT_TRUE(Eventually([&] { return refused() == "False NotAsked "; })) << refused();

  const auto has_workers = [&](size_t workers) {
    return Eventually([&] {
      return StatusOf("nightly").granted_workers == workers &&
             StatusOf("nightly").running_workers == workers &&
             kubelet_->Running("worker").size() == workers;
    });
  };
  EXPECT_TRUE(has_workers(2));
  const std::string unwanted = kubelet_->Running("worker").at(0);
  GrantTrainingJob("nightly", k8s::Grant{1, {unwanted}, {}});
  EXPECT_TRUE(has_workers(1)) << ::testing::PrintToString(Events(1));
  EXPECT_NE(kubelet_->Running("worker").at(0), unwanted);
  GrantTrainingJob("nightly", std::nullopt);
  PatchTrainingJob("nightly", R"({"spec":{"workers":{"max":3}}})");
  EXPECT_TRUE(has_workers(3)) << ::testing::PrintToString(Events(1));

  PatchTrainingJob("nightly", R"({"spec":{"activeDeadlineSeconds":1}})");
  EXPECT_TRUE(Eventually([&] { return k8s::Holds(StatusOf("nightly"), k8s::kConditionFailed); }));
  EXPECT_TRUE(
      Eventually([&] { return catalog_->jobs().Find(1)->state == catalog::JobState::kFailed; }));
  EXPECT_THAT(catalog_->jobs().Find(1)->error, HasSubstr("activeDeadlineSeconds"));
  EXPECT_TRUE(Eventually([&] { return kubelet_->Count(k8s::kPods) == 0; }));
  PatchTrainingJob("nightly", R"({"spec":{"ttlSecondsAfterFinished":0}})");
  EXPECT_TRUE(Eventually([&] { return kubelet_->Count(k8s::kTrainingJobs) == 0; }));
}

}  // namespace
}  // namespace sluice::executor
