#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/base64.h"
#include "catalog/store/job_logins.h"
#include "executor/local/detached_job.h"
#include "executor/management/show_jobs.h"
#include "executor/pods/pod_cluster.h"
#include "executor/pods/pod_job.h"
#include "k8s/event_recorder.h"
#include "k8s/json_internal.h"
#include "k8s/training_job.h"
#include "k8s/training_job_status.h"
#include "server/pgwire/pod_login.h"
#include "server/statements/source_pool.h"
#include "server/statements/training_job.h"
#include "server/statements/training_job_login.h"
#include "tests/k8s/local_kubelet.h"
#include "tests/process/cluster_job.h"
#include "tests/support/postgres_server.h"

namespace sluice::executor {

// Trainings whose master, workers and parameter servers are pods: real processes, started by the
// test's kubelet from the pods that the master and the gateway have created.
class Pods : public ClusterJobs {
 protected:
  // Of 15,000: a hash of each row picks the other rows for validation.
  static constexpr int64_t kRowsTrained = 14'252;
  static constexpr char kGatewaysPassword[] = "0wn-s3cret";  // the server asks nobody
  static constexpr char kSynchronous[] =
      "train.epoch=12, engine.seed=5, engine.num_workers=2, engine.max_workers=2, engine.num_ps=2, "
      "engine.sync=true";

  void SetUp() override {
    if (database_.url().empty()) {
      GTEST_SKIP() << "no PostgreSQL";
    }
    UseDatabase(database_.url(),
                "CREATE TABLE points AS SELECT i, (i * 7919 % 1000) / 500.0::float8 - 1 AS a, "
                "(i * 104729 % 997) / 500.0::float8 - 1 AS b, ((i * 7919 % 1000) + (i * "
                "104729 % 997) > 1000)::int AS y FROM generate_series(1::bigint, 15000) AS i");
    // Like an installation's, the gateway is an ordinary role that may create its schema, and its
    // user one that may read the table.
    const std::string name = database_.url().substr(database_.url().rfind('/') + 1);
    gateway_ = "gateway_of_" + name;
    user_ = "user_of_" + name;
    for (const std::string& sql :
         {"CREATE ROLE " + gateway_ + " LOGIN", "CREATE ROLE " + user_ + " LOGIN",
          "GRANT CREATE ON DATABASE " + name + " TO " + gateway_,
          "GRANT SELECT ON points TO " + user_}) {
      const Status done = source_->Execute(sql, nullptr, {}).status();
      ASSERT_TRUE(done.ok()) << sql << "\n" << done.ToString();
    }
    PrepareServer();
    admin_ = std::move(source_);
    url_ = UrlBy(Url(), fmt::format("{}:{}", gateway_, kGatewaysPassword), 0);
    source_ = catalog::OpenDataSource(UserUrl()).value();
    gateways_catalog_ = catalog::OpenCatalog(Url()).value();
    catalog_ = gateways_catalog_->For({user_});
    StartCluster({SLUICE_BINARY, 2});
  }
  // What `sluice setup` prints, run as an administrator runs it.
  void PrepareServer() {
    FILE* const psql = popen(("psql -X -q -v ON_ERROR_STOP=1 '" + Url() + "'").c_str(), "w");
    ASSERT_NE(psql, nullptr);
    std::fputs(catalog::JobLoginFunctions(gateway_).c_str(), psql);
    ASSERT_EQ(pclose(psql), 0);
  }
  std::string UserUrl() const {
    return UrlBy(Url(), users_password_.empty() ? user_ : user_ + ":" + users_password_, 0);
  }
  void StartCluster(const k8s::LocalKubelet::Options& options) {
    cluster_.reset();
    kubelet_ = std::make_unique<k8s::LocalKubelet>(options);
    StartGateway();
  }
  void TearDown() override {
    cluster_.reset();
    if (HasFailure() && kubelet_ != nullptr) {
      for (const char* role : {"master", "worker", "ps"}) {
        for (const std::string& pod : kubelet_->Started(role)) {
          std::fprintf(stderr, "--- %s\n%s\n", pod.c_str(), kubelet_->LogOf(pod).c_str());
        }
      }
    }
    kubelet_.reset();
    sources_.reset();
    catalog_.reset();
    gateways_catalog_.reset();
    if (admin_ != nullptr) {
      const Status dropped =
          admin_
              ->Execute(
                  "DO $$ DECLARE r record; BEGIN FOR r IN SELECT login FROM "
                  "sluice.job_logins LOOP EXECUTE format('DROP ROLE %s', r.login); "
                  "END LOOP; EXCEPTION WHEN undefined_table THEN NULL; END $$",
                  nullptr, {})
              .status();
      EXPECT_TRUE(dropped.ok()) << dropped.ToString();
    }
    for (const std::string& role : {gateway_, user_}) {
      for (const std::string& sql : {"DROP OWNED BY " + role + " CASCADE", "DROP ROLE " + role}) {
        EXPECT_TRUE(admin_ == nullptr || admin_->Execute(sql, nullptr, {}).ok()) << sql;
      }
    }
    admin_.reset();
    ClusterJobs::TearDown();
  }

  void StartGateway() {
    sources_ = server::SourcePool::Open(Url(), server::Auth::kTrust).value();
    cluster_ = AnotherGateway(*sources_);
    ASSERT_NE(cluster_, nullptr);
  }
  std::unique_ptr<PodCluster> AnotherGateway(server::SourcePool& sources) {
    PodCluster::Options options;
    options.image = "sluice";
    options.on_this_machine = true;
    options.catalog_url = Url();
    options.training_jobs = server::TrainingJobsOf(sources, std::nullopt);
    options.priority_class = priority_class_;
    options.pod_login = [this](const catalog::DatabaseLogin& login) {
      return server::pgwire::PodLogin(at_desk_.url.empty() ? login : at_desk_, Url(), tickets_);
    };
    auto cluster =
        PodCluster::Start(KubernetesAccess::Open({kubelet_->kubeconfig(), "", ""}).value(), options,
                          std::make_unique<LocalCluster>(Machine(8)));
    EXPECT_TRUE(cluster.ok()) << cluster.status().ToString();
    return cluster.ok() ? *std::move(cluster) : nullptr;
  }

  // As a gateway runs it.
  Status Train(const std::string& model, const std::string& attributes, RecordingSink& sink,
               const std::stop_token& stop = {}, bool lets_go = false) {
    return TrainBy(TrainText(model, attributes), sink, stop, lets_go);
  }
  Status TrainBy(const std::string& sql, RecordingSink& sink, const std::stop_token& stop = {},
                 bool lets_go = false) {
    ASSIGN_OR_RETURN(const auto statements, parser::Parse(sql));
    ASSIGN_OR_RETURN(const auto source, catalog::OpenDataSource(UserUrl()));
    const auto catalog = gateways_catalog_->For({user_});
    ASSIGN_OR_RETURN(const plan::Plan plan,
                     planner::MakePlan(std::get<parser::TrainStatement>(statements.at(0)), *source,
                                       catalog->models(), OnPods()));
    Context context{*source, *catalog, "tester", sql, stop, cluster_.get()};
    return FollowJob(
        plan, context, {}, [lets_go] { return lets_go; }, sink);
  }
  // The same training on processes of this machine.
  Status TrainHere(const std::string& model, const std::string& attributes) {
    return TrainHereBy(TrainText(model, attributes));
  }
  Status TrainHereBy(const std::string& sql) {
    ASSIGN_OR_RETURN(const auto statements, parser::Parse(sql));
    ASSIGN_OR_RETURN(const plan::Plan plan,
                     planner::MakePlan(std::get<parser::TrainStatement>(statements.at(0)), *source_,
                                       catalog_->models(), {}));
    LocalCluster here(Machine(8));
    RecordingSink quiet;
    Context context{*source_, *catalog_, "tester", sql, {}, &here};
    return Execute(plan, context, quiet);
  }
  static planner::Options OnPods() {
    planner::Options options;
    options.pods = true;
    return options;
  }
  std::string Sha(const std::string& model) const {
    return catalog_->models().Find("", model, std::nullopt)->weights_sha256;
  }
  // As with `kubectl create -f`, including the Secret that it names.
  // Trains m, with a folder of checkpoints that all pods mount.
  void CreateJobWithCheckpoints(const std::string& name, const std::string& attributes) {
    std::string pattern = ::testing::TempDir() + "/sluice-pods-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    const std::string folder = (folder_ / "checkpoints").lexically_normal().string();
    CreateTrainingJob(name, TrainText("m", fmt::format("{}, engine.checkpoint_dir='{}', "
                                                       "engine.volume='claim_name=c,mount_path={}'",
                                                       attributes, folder, folder)));
  }
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
          R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"database","labels":{")" +
              std::string(k8s::kSourceLabel) + R"(":"true"}},"data":{"source":")" +
              EncodeBase64(UserUrl()) + R"("}})"},
         {k8s::kTrainingJobs, where, k8s::BuildTrainingJob(where, name, spec)}},
        {});
    ASSERT_TRUE(made.at(1).ok()) << made.at(1).status.ToString();
  }
  // As with `kubectl patch --type=merge`.
  void PatchTrainingJob(const std::string& name, const std::string& patch) {
    const auto patched = k8s::PatchObject(kubelet_->client(), k8s::kTrainingJobs,
                                          kubelet_->namespace_name(), name, "", patch, {});
    ASSERT_TRUE(patched.ok()) << patched.status.ToString();
  }
  // As a controller does.
  void GrantTrainingJob(const std::string& name, const std::optional<k8s::Grant>& grant) {
    const auto patched =
        k8s::PatchObject(kubelet_->client(), k8s::kTrainingJobs, kubelet_->namespace_name(), name,
                         "status", k8s::GrantPatch(grant), {});
    ASSERT_TRUE(patched.ok()) << patched.status.ToString();
  }
  k8s::TrainingJobStatus StatusOf(const std::string& name) {
    const auto found = k8s::GetObject(kubelet_->client(), k8s::kTrainingJobs,
                                      kubelet_->namespace_name(), name, {});
    return found.ok() ? k8s::ParseTrainingJobStatus(found.object.json).value()
                      : k8s::TrainingJobStatus();
  }
  // It says what its job has stored: the first version of the only model.
  void ExpectStored(const k8s::TrainingJobStatus& told) {
    const auto models = catalog_->models().List();
    ASSERT_TRUE(models.ok() && models->size() == 1);
    EXPECT_EQ(told.version, 1);
    EXPECT_EQ(told.rows, models->front().rows);
    EXPECT_EQ(told.sha256, models->front().weights_sha256);
    EXPECT_EQ(told.sha256.size(), 64U);
    EXPECT_TRUE(told.seconds);
  }
  std::string ConditionsOf(const std::string& name) {
    std::string text;
    for (const k8s::Condition& condition : StatusOf(name).conditions) {
      text += fmt::format("{} {} {} {}\n", condition.type, condition.status, condition.reason,
                          condition.message);
    }
    return text;
  }
  std::string OnlyTrainingJob() {
    const auto jobs = k8s::ListObjects(kubelet_->client(),
                                       {k8s::kTrainingJobs, kubelet_->namespace_name(), ""}, {});
    return jobs.objects.size() == 1 ? jobs.objects[0].name : "";
  }
  // SHOW JOB's lines about its pods.
  std::vector<std::string> PodsShown(int64_t job) {
    RecordingSink sink;
    Context context{*source_, *catalog_, "tester", "SHOW JOB", {}, cluster_.get()};
    EXPECT_TRUE(ShowJob(job, {}, context, sink).ok());
    std::vector<std::string> pods;
    for (const std::vector<Value>& row : sink.rows) {
      if (std::get<std::string>(row.at(0)) == "pod") {
        pods.push_back(std::get<std::string>(row.at(1)) + " " + std::get<std::string>(row.at(2)));
      }
    }
    return pods;
  }
  // The Prometheus metrics of a master's pod.
  std::string MetricsOf(const std::string& pod) {
    const auto found =
        k8s::GetObject(kubelet_->client(), k8s::kPods, kubelet_->namespace_name(), pod, {});
    const auto json = k8s::ParseJsonObject(found.object.json, "a pod");
    const std::string url =
        fmt::format("http://{}:{}/metrics", k8s::TextIn(*json, {"status", "podIP"}), kMetricsPort);
    std::string page;
    FILE* const curl = popen(("curl -s --max-time 5 " + url).c_str(), "r");
    char buffer[4096];
    for (size_t got = 1; got > 0 && curl != nullptr;) {
      got = fread(buffer, 1, sizeof(buffer), curl);
      page.append(buffer, got);
    }
    pclose(curl);
    return page;
  }
  // Number of times that each Event has happened, by its reason.
  std::map<std::string, int64_t> Reasons() {
    std::map<std::string, int64_t> reasons;
    for (const k8s::Object& event :
         k8s::ListObjects(kubelet_->client(), {k8s::kEvents, kubelet_->namespace_name(), ""}, {})
             .objects) {
      const auto json = k8s::ParseJsonObject(event.json, "an Event");
      reasons[std::string(k8s::TextIn(*json, {"reason"}))] += k8s::NumberIn(*json, {"count"});
    }
    return reasons;
  }
  // No Kubernetes object of a job is left.
  void ExpectNothingLeft() {
    for (const k8s::Resource& resource : {k8s::kPods, k8s::kSecrets, k8s::kServices}) {
      EXPECT_TRUE(Eventually([&] { return kubelet_->Count(resource) == 0; })) << resource.plural;
    }
  }

  testing::PostgresTestDatabase database_;
  std::string users_password_;  // "": the server does not ask the user
  std::string gateway_, user_;  // roles; `source_` and `catalog_` are the user's, Url the gateway's
  std::unique_ptr<catalog::DataSource> admin_;
  std::unique_ptr<catalog::Catalog> gateways_catalog_;
  std::unique_ptr<k8s::LocalKubelet> kubelet_;
  std::string priority_class_;  // of the pods
  const server::pgwire::TicketOffice tickets_;
  // With what the gateway reads for a user who has logged in with SCRAM; no URL: nobody has.
  catalog::DatabaseLogin at_desk_;
  std::unique_ptr<server::SourcePool> sources_;
  std::unique_ptr<PodCluster> cluster_;
};

}  // namespace sluice::executor
