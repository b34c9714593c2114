#include <fmt/core.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <csignal>

#include "catalog/source_url.h"
#include "executor/jobs/lost_jobs.h"
#include "tests/process/pods_fixture.h"

// Jobs requested through Kubernetes.
namespace sluice::executor {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kTrees[] =
    "SELECT a, b, y FROM points TO TRAIN xgboost.gbtree WITH tree_method='exact', "
    "objective='binary:logistic', "
    "train.num_boost_round=3 LABEL y INTO m";
constexpr char kLongTrees[] =
    "SELECT a, b, y FROM points TO TRAIN xgboost.gbtree WITH tree_method='exact', "
    "objective='binary:logistic', "
    "train.num_boost_round=10000 LABEL y INTO m";

bool Runs(int64_t process) {
  return kill(static_cast<pid_t>(process), 0) == 0;
}

// Without a client of the gateway.
TEST_F(Pods, ATrainingJobThatSomebodyCreatesTrains) {
  CreateTrainingJob("nightly", TrainText("m", "train.epoch=4, engine.seed=5"));
  EXPECT_TRUE(Eventually([&] { return k8s::Holds(StatusOf("nightly"), k8s::kConditionComplete); }));
  const k8s::TrainingJobStatus told = StatusOf("nightly");
  EXPECT_EQ(told.job, 1);
  EXPECT_EQ(told.model, "m");
  EXPECT_EQ(told.most_workers, 2U);
  EXPECT_NE(told.ended, "");
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kSucceeded);
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 4 * kRowsTrained);
  ExpectStored(told);
  EXPECT_TRUE(Eventually([&] { return kubelet_->Count(k8s::kPods) == 0; }));
  EXPECT_EQ(kubelet_->Count(k8s::kTrainingJobs), 1U);
}

// Trees of libxgboost train in the gateway's process, where no master writes the status.
TEST_F(Pods, ATrainingJobOfTreesEndsToo) {
  CreateTrainingJob("trees", kTrees);
  ASSERT_TRUE(Eventually([&] { return k8s::Holds(StatusOf("trees"), k8s::kConditionComplete); }));
  const k8s::TrainingJobStatus told = StatusOf("trees");
  EXPECT_EQ(told.job, 1);
  EXPECT_EQ(told.model, "m");
  ExpectStored(told);
  EXPECT_NE(told.ended, "");
  EXPECT_FALSE(k8s::Holds(told, k8s::kConditionQueued));
  EXPECT_EQ(kubelet_->Count(k8s::kPods), 0U);
}

// In the gateway's process as on pods.
TEST_F(Pods, ATrainingJobOfTreesThatIsDeletedIsCancelled) {
  CreateTrainingJob("trees", kLongTrees);
  ASSERT_TRUE(Eventually([&] { return StatusOf("trees").job == 1; })) << ConditionsOf("trees");
  const auto running = gateways_catalog_->jobs().Running();
  ASSERT_THAT(running.value(), SizeIs(1));
  const int64_t process = running->front().runner.pid;
  k8s::DeleteAll(kubelet_->client(),
                 {{k8s::kTrainingJobs, kubelet_->namespace_name(), "trees", "", 1}}, {});
  EXPECT_TRUE(
      Eventually([&] { return catalog_->jobs().Find(1)->state == catalog::JobState::kCancelled; }));
  EXPECT_THAT(catalog_->jobs().Find(1)->error, HasSubstr("its TrainingJob was deleted"));
  EXPECT_TRUE(Eventually([&] { return !Runs(process); }));
}

// Its owner need not log in: the gateway has the login in the Secret.
TEST_F(Pods, ATrainingJobOfTreesWhoseProcessIsLostGoesOn) {
  CreateTrainingJob("trees", kLongTrees);
  ASSERT_TRUE(Eventually([&] { return StatusOf("trees").job == 1; })) << ConditionsOf("trees");
  const auto process = [this] {
    const auto running = gateways_catalog_->jobs().Running();
    return running.ok() && running->size() == 1 ? running->front().runner.pid : int64_t{0};
  };
  const int64_t lost = process();
  ASSERT_GT(lost, 0);
  kill(static_cast<pid_t>(lost), SIGKILL);
  EXPECT_TRUE(Eventually([&] { return Count(1, kTakenOverEvent) == 1; }));
  EXPECT_TRUE(Eventually([&] { return process() != lost && Runs(process()); }));
  k8s::DeleteAll(kubelet_->client(),
                 {{k8s::kTrainingJobs, kubelet_->namespace_name(), "trees", "", 1}}, {});
  EXPECT_TRUE(
      Eventually([&] { return catalog_->jobs().Find(1)->state == catalog::JobState::kCancelled; }));
}

TEST_F(Pods, ATrainingJobOfTreesHasADeadline) {
  CreateTrainingJob("trees", kLongTrees);
  ASSERT_TRUE(Eventually([&] { return StatusOf("trees").job == 1; })) << ConditionsOf("trees");
  const auto running = gateways_catalog_->jobs().Running();
  ASSERT_THAT(running.value(), SizeIs(1));
  const int64_t process = running->front().runner.pid;
  PatchTrainingJob("trees", R"({"spec":{"activeDeadlineSeconds":1}})");
  EXPECT_TRUE(Eventually([&] { return k8s::Holds(StatusOf("trees"), k8s::kConditionFailed); }));
  EXPECT_THAT(ConditionsOf("trees"), HasSubstr("Failed True DeadlineExceeded the training has "
                                               "taken longer than 1 seconds"));
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kFailed);
  EXPECT_TRUE(Eventually([&] { return !Runs(process); }));
}

// Both gateways are asked to begin each of them, as when one's claim was taken for lost.
TEST_F(Pods, ATrainingJobIsTrainedOnceByWhicheverGateway) {
  TrainingJobRequest request;
  request.name = "trees";
  request.uid = "uid-of-trees";
  request.spec.statement = kTrees;
  request.spec.source_secret = "database";
  request.source_url = UserUrl();
  const auto gateways = server::TrainingJobsOf(*sources_, std::nullopt);
  const TrainingJobSource source = gateways(*cluster_);
  std::vector<std::jthread> threads;
  std::vector<Result<int64_t>> begun(4, Result<int64_t>(Unavailable("not tried")));
  for (Result<int64_t>& each : begun) {
    threads.emplace_back([&each, &source, &request] { each = source.begin(request, {}); });
  }
  threads.clear();
  for (const Result<int64_t>& each : begun) {
    ASSERT_TRUE(each.ok()) << each.status().ToString();
    EXPECT_EQ(*each, *begun[0]);
  }
  EXPECT_EQ(source.begin(request, {}).value(), *begun[0]);
  EXPECT_EQ(catalog_->jobs().Count().value(), 1);
  EXPECT_TRUE(Eventually(
      [&] { return catalog_->jobs().Find(*begun[0])->state == catalog::JobState::kSucceeded; }));
  EXPECT_EQ(source.begin(request, {}).value(), *begun[0]) << "it has ended";
}

// Those of a database that takes no connections wait for it, and hold nobody else up.
TEST_F(Pods, ManyTrainingJobsOfTwoGatewaysAreTrainedOnceEach) {
  constexpr int kMany = 12, kLost = 2;
  const testing::PostgresTestDatabase lost;
  const std::string database = lost.url().substr(lost.url().rfind('/') + 1);
  const auto administer = [this](const std::string& sql) {
    const auto done = admin_->Execute(sql, nullptr, {});
    EXPECT_TRUE(done.ok()) << sql << "\n" << done.status().ToString();
  };
  administer("GRANT CREATE ON DATABASE " + database + " TO " + gateway_);
  administer("ALTER DATABASE " + database + " CONNECTION LIMIT 0");
  const auto sources = server::SourcePool::Open(Url(), server::Auth::kTrust).value();
  const std::unique_ptr<PodCluster> second = AnotherGateway(*sources);
  ASSERT_NE(second, nullptr);

  const std::string& where = kubelet_->namespace_name();
  std::vector<k8s::Creation> all;
  for (const auto& [secret, url] : std::map<std::string, std::string>{
           {"shop", UserUrl()}, {"lost", catalog::WithDatabase(UserUrl(), database)}}) {
    all.push_back({k8s::kSecrets, where,
                   R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":")" + secret +
                       R"(","labels":{")" + std::string(k8s::kSourceLabel) +
                       R"(":"true"}},"data":{"source":")" + EncodeBase64(url) + R"("}})"});
  }
  for (int i = 0; i < kMany; ++i) {
    k8s::TrainingJobSpec spec;
    spec.statement =
        "SELECT i % 7 AS a, i % 2 AS y FROM generate_series(1, 400) AS t (i) TO TRAIN "
        "xgboost.gbtree WITH tree_method='exact', objective='binary:logistic', "
        "train.num_boost_round=3 LABEL y INTO m";
    spec.source_secret = i < kLost ? "lost" : "shop";
    all.push_back({k8s::kTrainingJobs, where,
                   k8s::BuildTrainingJob(where, fmt::format("trees-{}", i), spec)});
  }
  // Of those with that Secret.
  const auto count = [&](const std::string& secret, const auto& is) {
    const k8s::Listing jobs =
        k8s::ListObjects(kubelet_->client(), {k8s::kTrainingJobs, where, ""}, {});
    return std::count_if(jobs.objects.begin(), jobs.objects.end(), [&](const auto& object) {
      return k8s::ParseTrainingJobSpec(object.json)->source_secret == secret &&
             is(k8s::ParseTrainingJobStatus(object.json).value());
    });
  };
  const auto begun = [](const k8s::TrainingJobStatus& status) { return status.job.has_value(); };
  const auto complete = [](const k8s::TrainingJobStatus& status) {
    return k8s::Holds(status, k8s::kConditionComplete);
  };
  const auto begin = std::chrono::steady_clock::now();
  for (const k8s::ObjectAnswer& made : k8s::CreateAll(kubelet_->client(), all, {})) {
    ASSERT_TRUE(made.ok()) << made.status.ToString();
  }
  ASSERT_TRUE(Eventually([&] { return count("shop", begun) == kMany - kLost; }));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  fmt::print(
      "{} TrainingJobs, {} of them of a database without a connection: the others had begun "
      "after {:.1f} s\n",
      kMany, kLost, seconds.count());
  ASSERT_TRUE(Eventually([&] { return count("shop", complete) == kMany - kLost; }));
  EXPECT_EQ(count("lost", begun), 0);
  administer("ALTER DATABASE " + database + " CONNECTION LIMIT -1");
  EXPECT_TRUE(Eventually([&] { return count("lost", complete) == kLost; }))
      << ConditionsOf("trees-0");
  EXPECT_EQ(catalog_->jobs().Count().value(), kMany - kLost);
  const auto other = catalog::OpenCatalog(catalog::WithDatabase(Url(), database)).value();
  EXPECT_EQ(other->For({user_})->jobs().Count().value(), kLost);
}

// Its row is there, and its Service is not.
TEST_F(Pods, AJobThatAGatewayHasLeftBehindBeforeItBeganIsBegunAnew) {
  catalog::Job job;
  job.kind = "train";
  job.request = "uid-of-trees";
  job.runner = {fmt::format("pods/{}/uid-of-trees", kubelet_->namespace_name()), 1, 0,
                WallMicros()};
  ASSERT_EQ(catalog_->jobs().Create(job).value(), 1);
  TrainingJobRequest request;
  request.name = "trees";
  request.uid = "uid-of-trees";
  request.spec.statement = kTrees;
  request.source_url = UserUrl();
  const TrainingJobSource source = server::TrainingJobsOf(*sources_, std::nullopt)(*cluster_);
  EXPECT_EQ(source.begin(request, {}).status().code(), Code::kUnavailable);
  catalog::JobRunner silent = job.runner;
  silent.seen_micros = WallMicros() - 60'000'000;
  ASSERT_TRUE(catalog_->jobs().Seen(1, silent).value());
  EXPECT_EQ(source.begin(request, {}).value(), 2);
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kFailed);
}

TEST_F(Pods, ATrainingJobWithAWrongStatementSaysWhere) {
  CreateTrainingJob("wrong", "SELECT a, b, y FROM points\nTO TRAIN DNNClassifier LABEL z INTO m");
  EXPECT_TRUE(Eventually([&] { return k8s::Holds(StatusOf("wrong"), k8s::kConditionFailed); }));
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
  ASSERT_TRUE(Eventually([&] { return Count(1, "epoch_done") >= 1; }));
  EXPECT_TRUE(k8s::Holds(StatusOf("nightly"), k8s::kConditionRunning) ||
              Eventually([&] { return k8s::Holds(StatusOf("nightly"), k8s::kConditionRunning); }));
  const std::vector<std::string> masters = kubelet_->Running("master");
  ASSERT_EQ(masters.size(), 1U);
  kubelet_->Kill(masters[0]);
  k8s::DeleteAll(kubelet_->client(),
                 {{k8s::kTrainingJobs, kubelet_->namespace_name(), "nightly", "", 1}}, {});
  EXPECT_TRUE(Eventually([&] {
    return catalog_->jobs().Find(1)->state == catalog::JobState::kCancelled;
  })) << catalog_->jobs().Find(1)->error;
  EXPECT_TRUE(Eventually([&] { return kubelet_->Count(k8s::kPods) == 0; }));
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
  ASSERT_TRUE(Eventually([&] { return Count(1, "epoch_done") >= 1; })) << ConditionsOf("nightly");
  PatchTrainingJob("nightly", R"({"spec":{"suspend":true}})");
  ASSERT_TRUE(Eventually([&] { return k8s::Holds(StatusOf("nightly"), k8s::kConditionSuspended); }))
      << ::testing::PrintToString(Events(1));
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kSuspended);
  EXPECT_GE(Count(1, "checkpoint_written"), 1);
  EXPECT_TRUE(Eventually([&] { return kubelet_->Count(k8s::kPods) == 0; }));
  for (const char* const role : {"master", "worker"}) {
    EXPECT_EQ(kubelet_->ExitCodeOf(kubelet_->Started(role).at(0)), 0) << "an ordinary end";
  }
  EXPECT_FALSE(k8s::Holds(StatusOf("nightly"), k8s::kConditionRunning));
  EXPECT_EQ(StatusOf("nightly").running_workers, 0U);
  // The next gateway does not begin it either.
  cluster_.reset();
  StartGateway();
  EXPECT_EQ(kubelet_->Count(k8s::kPods), 0U);
  PatchTrainingJob("nightly", R"({"spec":{"suspend":false}})");
  ASSERT_TRUE(Eventually([&] { return k8s::Holds(StatusOf("nightly"), k8s::kConditionComplete); }))
      << catalog_->jobs().Find(1)->error << ::testing::PrintToString(Events(1));
  EXPECT_FALSE(k8s::Holds(StatusOf("nightly"), k8s::kConditionSuspended));
  EXPECT_EQ(Count(1, "job_resumed"), 1);
  EXPECT_EQ(Reasons()["Resumed"], 1);
  EXPECT_EQ(Reasons()["TookOver"], 0) << "no master was lost";
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
  ASSERT_TRUE(Eventually([&] { return Count(1, "epoch_done") >= 1; })) << ConditionsOf("nightly");
  kubelet_->EndLate(std::chrono::seconds(40));
  PatchTrainingJob("nightly", R"({"spec":{"suspend":true}})");
  ASSERT_TRUE(Eventually([&] { return k8s::Holds(StatusOf("nightly"), k8s::kConditionSuspended); }))
      << ::testing::PrintToString(Events(1));
  PatchTrainingJob("nightly", R"({"spec":{"suspend":false}})");
  ASSERT_TRUE(Eventually([&] { return Count(1, "job_resumed") == 1; }));
  kubelet_->EndLate(std::chrono::seconds(0));
  ASSERT_TRUE(Eventually([&] { return catalog::HasEnded(catalog_->jobs().Find(1)->state); }))
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
  ASSERT_TRUE(Eventually([&] { return Count(1, "epoch_done") >= 1; })) << ConditionsOf("nightly");
  kubelet_->EndLate(std::chrono::seconds(600));
  PatchTrainingJob("nightly", R"({"spec":{"suspend":true}})");
  ASSERT_TRUE(Eventually([&] { return k8s::Holds(StatusOf("nightly"), k8s::kConditionSuspended); }))
      << ::testing::PrintToString(Events(1));
  const std::vector<std::string> left = kubelet_->Running("ps");
  EXPECT_EQ(left.size(), 2U);
  for (const std::string& server : left) {
    kill(kubelet_->ProcessId(server).value(), SIGSTOP);  // or it would end by itself
  }
  PatchTrainingJob("nightly", R"({"spec":{"suspend":false}})");
  ASSERT_TRUE(Eventually([&] { return Count(1, "job_resumed") == 1; }));
  const int done = Count(1, "epoch_done");
  ASSERT_TRUE(Eventually([&] { return Count(1, "epoch_done") > done; }));
  const std::vector<std::string> masters = kubelet_->Running("master");
  ASSERT_FALSE(masters.empty());
  EXPECT_TRUE(kubelet_->Kill(masters.back()));
  ASSERT_TRUE(Eventually([&] { return Count(1, "master_took_over") >= 1; }));
  for (const std::string& server : left) {
    EXPECT_TRUE(kubelet_->Kill(server));
  }
  kubelet_->EndLate(std::chrono::seconds(0));
  ASSERT_TRUE(Eventually([&] { return catalog::HasEnded(catalog_->jobs().Find(1)->state); }))
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
  ASSERT_TRUE(Eventually([&] { return Count(1, "epoch_done") >= 1; })) << ConditionsOf("nightly");
  EXPECT_TRUE(Eventually([&] { return StatusOf("nightly").can_suspend; }));
  GrantTrainingJob("nightly", k8s::Grant{0, {}, {}, "suspended: another one comes first", true});
  ASSERT_TRUE(Eventually([&] { return k8s::Holds(StatusOf("nightly"), k8s::kConditionSuspended); }))
      << ::testing::PrintToString(Events(1));
  EXPECT_TRUE(Eventually([&] { return kubelet_->Count(k8s::kPods) == 0; }));
  EXPECT_EQ(Count(1, "worker_drained"), 0) << "the checkpoint was written with all of them";
  RecordingSink shown;
  Context context{*source_, *catalog_, "tester", "SHOW JOBS", {}, cluster_.get()};
  ASSERT_TRUE(ShowJobs({}, context, shown).ok());
  EXPECT_EQ(std::get<std::string>(shown.Cell("place")), "none: suspended: another one comes first");
  GrantTrainingJob("nightly", k8s::Grant{2, {}, {}, "there is room"});
  ASSERT_TRUE(Eventually([&] { return k8s::Holds(StatusOf("nightly"), k8s::kConditionComplete); }))
      << catalog_->jobs().Find(1)->error << ::testing::PrintToString(Events(1));
  EXPECT_EQ(Count(1, "job_resumed"), 1);
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 300 * kRowsTrained);
}

// Changes to it while it runs: a grant, `kubectl scale`, a deadline.
TEST_F(Pods, ATrainingJobIsScaledAndHasADeadline) {
  CreateTrainingJob("nightly", TrainText("m", "train.epoch=100000"));
  ASSERT_TRUE(Eventually([&] { return Count(1, "epoch_done") >= 1; }));
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
  EXPECT_TRUE(Eventually([&] { return StatusOf("nightly").most_workers == 3; }));
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
