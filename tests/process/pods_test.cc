#include <gmock/gmock.h>

#include <csignal>

#include "executor/detached_job.h"
#include "executor/pods/pod_cluster.h"
#include "k8s/training_job.h"
#include "k8s/training_job_status.h"
#include "server/statements/training_job.h"
#include "tests/k8s/local_kubelet.h"
#include "tests/process/cluster_job.h"
#include "tests/support/postgres_server.h"

// Trainings whose master, workers and parameter servers are pods: real processes, started by what
// plays the kubelet from the pods that the master and the gateway have made.
namespace sluice::executor {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Pods : public ClusterJobs {
 protected:
  // Of 15,000: a hash of the row draws the others for validation.
  static constexpr int64_t kRowsTrained = 14'252;
  static constexpr char kSynchronous[] =
      "train.epoch=4, engine.seed=5, engine.num_workers=2, engine.max_workers=2, engine.num_ps=2, "
      "engine.sync=true";

  void SetUp() override {
    if (database_.url().empty()) {
      GTEST_SKIP() << "no PostgreSQL";
    }
    UseDatabase(database_.url(),
                "CREATE TABLE points AS SELECT i, (i * 7919 % 1000) / 500.0::float8 - 1 AS a, "
                "(i * 104729 % 997) / 500.0::float8 - 1 AS b, ((i * 7919 % 1000) + (i * "
                "104729 % 997) > 1000)::int AS y FROM generate_series(1::bigint, 15000) AS i");
    StartCluster({SLUICE_BINARY, 2});
  }
  void StartCluster(const k8s::LocalKubelet::Options& options) {
    cluster_.reset();
    kubelet_ = std::make_unique<k8s::LocalKubelet>(options);
    StartGateway();
  }
  void TearDown() override {
    cluster_.reset();
    if (HasFailure()) {
      for (const char* role : {"master", "worker", "ps"}) {
        for (const std::string& pod : kubelet_->Started(role)) {
          std::fprintf(stderr, "--- %s\n%s\n", pod.c_str(), kubelet_->LogOf(pod).c_str());
        }
      }
    }
    kubelet_.reset();
    ClusterJobs::TearDown();
  }

  void StartGateway() {
    PodCluster::Options options;
    options.image = "sluice";
    options.on_this_machine = true;
    options.catalog_url = Url();
    options.begin = server::BeginTrainingJob;
    auto cluster =
        PodCluster::Start(KubernetesAccess::Open({kubelet_->kubeconfig(), "", ""}).value(), options,
                          std::make_unique<LocalCluster>(Machine(8)));
    ASSERT_TRUE(cluster.ok()) << cluster.status().ToString();
    cluster_ = *std::move(cluster);
  }

  // As a gateway runs it.
  Status Train(const std::string& model, const std::string& attributes, RecordingSink& sink,
               const std::stop_token& stop = {}, bool lets_go = false) {
    const std::string sql = TrainText(model, attributes);
    ASSIGN_OR_RETURN(const auto statements, parser::Parse(sql));
    const auto source = Open();
    ASSIGN_OR_RETURN(const auto catalog, catalog::OpenCatalog(Url()));
    ASSIGN_OR_RETURN(const plan::Plan plan,
                     planner::MakePlan(std::get<parser::TrainStatement>(statements.at(0)), *source,
                                       catalog->models(), OnPods()));
    Context context{*source, *catalog, "tester", sql, stop, cluster_.get()};
    return AttendJob(
        plan, context, {}, [lets_go] { return lets_go; }, sink);
  }
  static planner::Options OnPods() {
    planner::Options options;
    options.pods = true;
    return options;
  }
  std::string Sha(const std::string& model) const {
    return catalog_->models().Find("", model, std::nullopt)->weights_sha256;
  }
  // As `kubectl create -f` does, with the Secret that it names.
  void CreateTrainingJob(const std::string& name, const std::string& statement) {
    const std::string& where = kubelet_->namespace_name();
    k8s::TrainingJobSpec spec;
    spec.statement = statement;
    spec.source_secret = "database";
    spec.workers.min = 1;
    spec.workers.max = 2;
    spec.servers.max = 1;
    const auto made = k8s::CreateAll(
        kubelet_->client(),
        {{k8s::kSecrets, where,
          R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"database"},"data":{"source":")" +
              Base64(Url()) + R"("}})"},
         {k8s::kTrainingJobs, where, k8s::BuildTrainingJob(where, name, spec)}},
        {});
    ASSERT_TRUE(made.at(1).ok()) << made.at(1).status.ToString();
  }
  static std::string Base64(const std::string& text) {
    constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string base64;
    for (size_t i = 0; i < text.size(); i += 3) {
      uint32_t bits = 0;
      for (size_t j = 0; j < 3; ++j) {
        bits = bits << 8 | (i + j < text.size() ? static_cast<unsigned char>(text[i + j]) : 0U);
      }
      for (size_t j = 0; j < 4; ++j) {
        base64 += i + j <= text.size() ? kDigits[bits >> (18 - 6 * j) & 63] : '=';
      }
    }
    return base64;
  }
  k8s::TrainingJobStatus StatusOf(const std::string& name) {
    const auto found = k8s::GetObject(kubelet_->client(), k8s::kTrainingJobs,
                                      kubelet_->namespace_name(), name, {});
    return found.ok() ? k8s::ParseTrainingJobStatus(found.object.json).value()
                      : k8s::TrainingJobStatus();
  }
  std::string OnlyTrainingJob() {
    const auto jobs = k8s::ListObjects(kubelet_->client(),
                                       {k8s::kTrainingJobs, kubelet_->namespace_name(), ""}, {});
    return jobs.objects.size() == 1 ? jobs.objects[0].name : "";
  }
  // Nothing is left of a job in Kubernetes.
  void ExpectNothingLeft() {
    for (const k8s::Resource& resource : {k8s::kPods, k8s::kSecrets, k8s::kServices}) {
      EXPECT_TRUE(Eventually([&] { return kubelet_->Count(resource) == 0; })) << resource.plural;
    }
  }

  testing::PostgresTestDatabase database_;
  std::unique_ptr<k8s::LocalKubelet> kubelet_;
  std::unique_ptr<PodCluster> cluster_;
};

TEST_F(Pods, AStatementTrainsOnPods) {
  RecordingSink sink;
  const Status status = Train("m", kSynchronous, sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(kubelet_->Started("master").size(), 1U);
  EXPECT_EQ(kubelet_->Started("worker").size(), 2U);
  EXPECT_EQ(kubelet_->Started("ps").size(), 2U);
  EXPECT_EQ(sink.rows.size(), 1U);
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kSucceeded);
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 4 * kRowsTrained);
  EXPECT_THAT(catalog_->jobs().Records(1, "").value(), IsEmpty());
  ExpectNothingLeft();
  const k8s::TrainingJobStatus told = StatusOf(OnlyTrainingJob());
  EXPECT_TRUE(k8s::Holds(told, k8s::kConditionComplete));
  EXPECT_FALSE(k8s::Holds(told, k8s::kConditionRunning));
  EXPECT_EQ(told.job, 1);
  EXPECT_EQ(told.model, "m");
  EXPECT_EQ(told.percent, 100);
  EXPECT_EQ(told.most_workers, 2U);
  EXPECT_EQ(told.master_number, 1U);
  // The same bits as on processes of this machine.
  LocalCluster here(Machine(8));
  RecordingSink quiet;
  ASSERT_TRUE(Run(TrainText("u", kSynchronous), here, *source_, quiet).ok());
  EXPECT_EQ(Sha("m"), Sha("u"));
}

TEST_F(Pods, K20_KilledMastersAreSucceededAndNobodyElseIsTouched) {
  RecordingSink quiet;
  ASSERT_TRUE(Train("u", kSynchronous, quiet).ok());
  RecordingSink sink;
  Status status;
  int killed = 0;
  {
    const std::jthread killer([&](const std::stop_token& stop) {
      for (int epoch = 1; epoch <= 2; ++epoch) {
        Eventually([&] { return stop.stop_requested() || Count(2, "epoch_done") >= epoch; }, 60);
        const std::vector<std::string> masters = kubelet_->Running("master");
        if (stop.stop_requested() || masters.empty()) {
          return;
        }
        // From here on the rows are others: of the snapshot that the job reads nobody sees it.
        Ask("WITH u AS (UPDATE points SET a = -a, y = 1 - y WHERE i % 2 = 0 RETURNING 1)"
            " SELECT count(*) FROM u");
        killed += kubelet_->Kill(masters.back()) ? 1 : 0;
        Eventually([&] { return stop.stop_requested() || Count(2, "master_took_over") >= killed; });
      }
    });
    status = Train("m", kSynchronous, sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(killed, 2);
  EXPECT_EQ(kubelet_->Started("master").size(), 1U + 3U);
  EXPECT_EQ(Count(2, "master_took_over"), 2);
  EXPECT_EQ(Count(2, "worker_lost"), 0) << ::testing::PrintToString(Events(2));
  EXPECT_EQ(Count(2, "server_lost"), 0) << ::testing::PrintToString(Events(2));
  EXPECT_EQ(Count(2, "snapshot_lost"), 0);
  EXPECT_EQ(kubelet_->Started("worker").size(), 2U + 2U);
  EXPECT_EQ(kubelet_->Started("ps").size(), 2U + 2U);
  EXPECT_EQ(catalog_->jobs().Find(2)->rows_trained, 4 * kRowsTrained);
  EXPECT_EQ(catalog_->models().Versions("", "m")->size(), 1U);
  EXPECT_TRUE(catalog_->jobs().Journal(2)->empty());
  ExpectNothingLeft();
  EXPECT_EQ(Sha("m"), Sha("u"));
}

// As on a node that is cut off: its pod is said to run, for minutes.
TEST_F(Pods, AMasterThatSaysNothingIsSucceeded) {
  RecordingSink sink;
  Status status;
  std::string silent;
  {
    const std::jthread node([&](const std::stop_token& stop) {
      Eventually([&] { return stop.stop_requested() || Count(1, "epoch_done") >= 1; }, 60);
      const std::vector<std::string> masters = kubelet_->Running("master");
      if (!masters.empty() && !stop.stop_requested()) {
        silent = masters.back();
        kill(kubelet_->ProcessId(silent).value(), SIGSTOP);
      }
      Eventually([&] { return stop.stop_requested() || Count(1, "master_took_over") >= 1; }, 60);
      if (!silent.empty()) {
        kill(kubelet_->ProcessId(silent).value(), SIGCONT);
      }
    });
    status = Train("m",
                   "train.epoch=20, engine.seed=5, engine.num_workers=2, "
                   "engine.max_workers=2, engine.num_ps=2, engine.sync=true",
                   sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_NE(silent, "");
  EXPECT_EQ(kubelet_->Started("master").size(), 2U);
  EXPECT_EQ(Count(1, "master_took_over"), 1);
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 20 * kRowsTrained);
  ExpectNothingLeft();
}

// As a drain does: SIGTERM.
TEST_F(Pods, AnEvictedMasterLeavesEverybodyRunning) {
  RecordingSink sink;
  Status status;
  std::string evicted;
  {
    const std::jthread drain([&](const std::stop_token& stop) {
      Eventually([&] { return stop.stop_requested() || Count(1, "epoch_done") >= 1; }, 60);
      const std::vector<std::string> masters = kubelet_->Running("master");
      if (stop.stop_requested() || masters.empty()) {
        return;
      }
      evicted = masters.back();
      kubelet_->Delete(evicted, 30);
    });
    status = Train("m", kSynchronous, sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_NE(evicted, "");
  EXPECT_THAT(kubelet_->LogOf(evicted), HasSubstr("evicted"));
  EXPECT_EQ(kubelet_->Started("master").size(), 2U);
  EXPECT_EQ(Count(1, "master_took_over"), 1);
  EXPECT_EQ(Count(1, "worker_lost"), 0) << ::testing::PrintToString(Events(1));
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kSucceeded);
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 4 * kRowsTrained);
  ExpectNothingLeft();
}

TEST_F(Pods, TheGatewayIsReplacedAndThenTheMaster) {
  RecordingSink sink;
  std::stop_source gateway_ends;
  Status status;
  {
    const std::jthread gateway([&](const std::stop_token& stop) {
      Eventually([&] { return stop.stop_requested() || Count(1, "epoch_done") >= 1; }, 60);
      gateway_ends.request_stop();
    });
    status = Train("m", "train.epoch=30, engine.seed=5, engine.num_workers=2, engine.num_ps=1",
                   sink, gateway_ends.get_token(), true);
  }
  EXPECT_THAT(status.ToString(), HasSubstr("job 1 goes on: WAIT JOB 1"));
  cluster_.reset();
  StartGateway();
  const std::vector<std::string> masters = kubelet_->Running("master");
  ASSERT_EQ(masters.size(), 1U);
  kubelet_->Kill(masters[0]);
  EXPECT_TRUE(Eventually(
      [&] { return catalog_->jobs().Find(1)->state != catalog::JobState::kRunning; }, 120));
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kSucceeded);
  EXPECT_EQ(kubelet_->Started("master").size(), 2U);
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 30 * kRowsTrained);
  ExpectNothingLeft();
}

TEST_F(Pods, WorkersAndServersThatGoAreReplaced) {
  RecordingSink sink;
  Status status;
  {
    const std::jthread node([&](const std::stop_token& stop) {
      const auto after = [&](int epochs) {
        return Eventually([&] { return stop.stop_requested() || Count(1, "epoch_done") >= epochs; },
                          60) &&
               !stop.stop_requested();
      };
      if (after(1)) {
        kubelet_->Delete(kubelet_->Running("worker").at(0), 30);  // leaves first
      }
      if (after(2)) {
        kubelet_->Kill(kubelet_->Running("worker").at(0));
        kubelet_->Kill(kubelet_->Running("ps").at(0));
      }
    });
    status = Train("m",
                   "train.epoch=6, engine.seed=5, engine.num_workers=2, engine.max_workers=2, "
                   "engine.num_ps=2, engine.replicas=1, engine.sync=true",
                   sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_GE(kubelet_->Started("worker").size(), 4U);
  EXPECT_GE(kubelet_->Started("ps").size(), 3U);
  EXPECT_EQ(kubelet_->Started("master").size(), 1U);
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 6 * kRowsTrained);
  ExpectNothingLeft();
}

// Three places, for which workers are first in the queue: two servers, one worker.
TEST_F(Pods, ServersAreGivenPlacesBeforeWorkers) {
  StartCluster({SLUICE_BINARY, 3, 0.75, true});
  RecordingSink sink;
  const Status status = Train("m",
                              "train.epoch=4, engine.seed=5, engine.num_workers=2, "
                              "engine.max_workers=2, engine.num_ps=2, engine.cpu=0.6, "
                              "engine.sync=true",
                              sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(kubelet_->Started("ps").size(), 2U);
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 4 * kRowsTrained);
  ExpectNothingLeft();
}

// What stays without a place, the client is told.
TEST_F(Pods, WhoHasNoPlaceSaysWhy) {
  StartCluster({SLUICE_BINARY, 2, 0.75});
  kubelet_->Occupy("node-1", 0.6);
  RecordingSink sink;
  sink.on_notice = [this](const std::string& notice) {
    if (notice.find(" waits: ") != std::string::npos) {
      EXPECT_TRUE(catalog_->jobs().RequestCancel(1).ok());
    }
  };
  const Status status = Train("m", "engine.num_workers=1, engine.num_ps=2, engine.cpu=0.6", sink);
  EXPECT_EQ(status.code(), Code::kCancelled) << status.ToString();
  EXPECT_THAT(sink.notices,
              ::testing::Contains(HasSubstr("waits: Unschedulable: 0/2 nodes are available: 2 "
                                            "Insufficient cpu.")));
  EXPECT_GE(Count(1, "pod_waits"), 1);
  EXPECT_THAT(kubelet_->Started("worker"), IsEmpty());
  ExpectNothingLeft();
}

// A server is lost, and its place goes to somebody else.
TEST_F(Pods, AWorkerGivesWayToAServer) {
  StartCluster({SLUICE_BINARY, 4, 0.75});
  RecordingSink sink;
  Status status;
  {
    const std::jthread node([&](const std::stop_token& stop) {
      Eventually([&] { return stop.stop_requested() || Count(1, "epoch_done") >= 1; }, 60);
      const std::vector<std::string> servers = kubelet_->Running("ps");
      if (!servers.empty()) {
        kubelet_->Occupy(kubelet_->NodeOf(servers[0]), 0.6);
        kubelet_->Kill(servers[0]);
      }
      Eventually([&] { return stop.stop_requested() || Count(1, "servers_placed") >= 1; }, 60);
      EXPECT_TRUE(catalog_->jobs().RequestCancel(1).ok());
    });
    status = Train("m",
                   "train.epoch=100000, engine.num_workers=2, engine.max_workers=2, "
                   "engine.num_ps=2, engine.replicas=1, engine.cpu=0.6",
                   sink);
  }
  EXPECT_EQ(status.code(), Code::kCancelled) << status.ToString();
  EXPECT_EQ(Count(1, "workers_give_way"), 1) << ::testing::PrintToString(Events(1));
  EXPECT_EQ(Count(1, "servers_placed"), 1) << ::testing::PrintToString(Events(1));
  EXPECT_EQ(kubelet_->Started("ps").size(), 3U);
  ExpectNothingLeft();
}

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

// `kubectl delete tj`, also where the master has just died.
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

TEST_F(Pods, PodsAreMadeAsTheStatementSays) {
  const std::string& where = kubelet_->namespace_name();
  const auto made = k8s::CreateAll(
      kubelet_->client(),
      {{k8s::kPodTemplates, where,
        R"({"apiVersion":"v1","kind":"PodTemplate","metadata":{"name":"spot"},"template":{)"
        R"("metadata":{"labels":{"team":"a"}},"spec":{}}})"}},
      {});
  ASSERT_TRUE(made.at(0).ok()) << made.at(0).status.ToString();
  RecordingSink sink;
  std::map<std::string, std::string> by_role;
  sink.on_progress = [&] {
    for (const k8s::Object& pod :
         k8s::ListObjects(kubelet_->client(), {k8s::kPods, where, "team=a"}, {}).objects) {
      by_role[pod.labels.at(std::string(k8s::kRoleLabel))] = pod.json;
    }
  };
  const Status status =
      Train("m",
            "train.epoch=20, engine.num_workers=2, engine.num_ps=1, "
            "engine.template='spot', engine.image_pull_policy='Never', "
            "engine.master_resource_request='cpu=150m', "
            "engine.worker_resource_request='cpu=350m', "
            "engine.ps_resource_request='cpu=250m', engine.ps_pod_priority='high'",
            sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_THAT(by_role["master"], HasSubstr(R"("cpu":"150m")"));
  EXPECT_THAT(by_role["worker"], HasSubstr(R"("cpu":"350m")"));
  EXPECT_THAT(by_role["ps"], HasSubstr(R"("cpu":"250m")"));
  EXPECT_THAT(by_role["ps"], HasSubstr(R"("priorityClassName":"sluice-high")"));
  EXPECT_THAT(by_role["worker"], HasSubstr(R"("imagePullPolicy":"Never")"));
}

TEST_F(Pods, CancelEndsAllOfThem) {
  RecordingSink sink;
  Status status;
  {
    const std::jthread user([&](const std::stop_token& stop) {
      Eventually([&] { return stop.stop_requested() || Count(1, "epoch_done") >= 1; }, 60);
      EXPECT_TRUE(catalog_->jobs().RequestCancel(1).ok());
    });
    status = Train("m", "train.epoch=2000, engine.num_workers=2, engine.num_ps=1", sink);
  }
  EXPECT_EQ(status.code(), Code::kCancelled) << status.ToString();
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kCancelled);
  ExpectNothingLeft();
}

// Nobody had read a row yet: there is no snapshot that somebody else could keep.
TEST_F(Pods, AMasterThatDiesFirstIsSucceeded) {
  RecordingSink sink;
  Status status;
  {
    const std::jthread killer([&](const std::stop_token& stop) {
      Eventually([&] { return stop.stop_requested() || Count(1, "master_started") >= 1; });
      const std::vector<std::string> masters = kubelet_->Running("master");
      if (!masters.empty()) {
        kubelet_->Kill(masters.back());
      }
    });
    status = Train("m", kSynchronous, sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 4 * kRowsTrained);
  ExpectNothingLeft();
}

TEST_F(Pods, WhatPodsCannotReachIsRefusedBeforeThereIsOne) {
  PodCluster::Options options;
  options.image = "sluice";
  cluster_.reset();
  cluster_ = PodCluster::Start(KubernetesAccess::Open({kubelet_->kubeconfig(), "", ""}).value(),
                               options, std::make_unique<LocalCluster>(Machine(8)))
                 .value();
  RecordingSink sink;
  const Status status =
      Train("m",
            "engine.num_workers=2, engine.num_ps=1, engine.checkpoint_dir='/nowhere/m', "
            "engine.template='spot'",
            sink);
  EXPECT_THAT(status.ToString(), HasSubstr("pods cannot reach the database at '127.0.0.1'"));
  EXPECT_THAT(status.ToString(), HasSubstr("no volume of the pods holds '/nowhere/m'"));
  EXPECT_THAT(status.ToString(), HasSubstr("there is no PodTemplate 'spot' in namespace training"));
  EXPECT_THAT(catalog_->jobs().List().value(), IsEmpty());
  EXPECT_EQ(kubelet_->Count(k8s::kServices), 0U);
}

}  // namespace
}  // namespace sluice::executor
