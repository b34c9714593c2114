#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "catalog/catalog.h"
#include "executor/cluster.h"
#include "executor/pods/job_keeper.h"
#include "executor/pods/kubernetes_access.h"
#include "executor/pods/training_jobs.h"
#include "executor/pods/trouble_teller.h"

namespace sluice::plan {
class Pods;
}  // namespace sluice::plan

namespace sluice::executor {

// Trainings on pods: each is a job of its own, whose master creates its workers and parameter
// servers. This process only keeps their masters running (JobKeeper); the jobs continue without it,
// and under its successor. Everything else runs in `here`. Thread-safe.
class PodCluster final : public Cluster {
 public:
  struct Options {
    std::string namespace_name;  // empty: our own
    std::string image;           // of all pods
    std::string template_json;   // k8s::PodShape
    std::string priority_class;  // k8s::PodShape
    // Catalog in which to close jobs that get no further master: a gateway's own database, for jobs
    // that an earlier gateway began.
    std::string catalog_url;
    bool on_this_machine = false;  // "localhost" means the same in a pod as here
    // With what a job's pods log in as its user, for the login that this process reads with; none:
    // the same.
    std::function<Result<catalog::DatabaseLogin>(const catalog::DatabaseLogin&)> pod_login = {};
    // For TrainingJobs that others have created; none: they are ignored.
    std::function<TrainingJobSource(Cluster& cluster)> training_jobs = {};
  };
  // Asks the API server for existing jobs, and continues them.
  static Result<std::unique_ptr<PodCluster>> Start(std::unique_ptr<KubernetesAccess> access,
                                                   Options options, std::unique_ptr<Cluster> here);
  ~PodCluster() override;

  Result<StartedJob> StartJob(Context& context, JobConfig config, JobSecrets secrets) override;
  // Only for work that cannot be a job of its own: refused.
  Status Train(const plan::TrainPlan& plan, Context& context, JobRecord& job,
               const elastic::ProgressCallback& progress) override;
  void ForgetJob(const catalog::JobRunner& runner) override;
  // Asks the API server.
  Result<elastic::ClusterState> State(const std::stop_token& stop) override;
  Result<elastic::StartForecast> Forecast(const plan::TrainPlan& plan,
                                          const std::stop_token& stop) override;
  void AddMetrics(elastic::MetricsText& text) override;
  bool is_elsewhere() const override { return true; }
  int64_t memory_bytes() const override { return here_->memory_bytes(); }
  Room* room() override { return here_->room(); }
  JobCloser& closer() override { return here_->closer(); }
  std::string Describe() const override;

 private:
  using Login = TroubleTeller::Login;
  PodCluster(std::unique_ptr<KubernetesAccess> access, Options options,
             std::unique_ptr<Cluster> here);
  // The template of a job's pods: the statement's, or ours.
  Result<std::string> TemplateFor(const plan::Pods& pods, const std::stop_token& stop) const;
  Status CheckFits(const Context& context, const JobConfig& config,
                   const std::string& pod_template) const;
  void Close(const JobKeeper::Job& job, const Status& why) EXCLUDES(mutex_);
  void CancelDeleted();
  Login LoginOf(const JobKeeper::Job& job) EXCLUDES(mutex_);

  const std::unique_ptr<KubernetesAccess> access_;
  const Options options_;
  const std::unique_ptr<Cluster> here_;
  Mutex mutex_;
  std::map<std::string, Login> logins_ GUARDED_BY(mutex_);  // by the uid of a job
  // Last: their threads use the others.
  std::unique_ptr<JobKeeper> keeper_;
  std::unique_ptr<TrainingJobs> training_jobs_;
  std::unique_ptr<TroubleTeller> teller_;
  std::jthread janitor_;
};

}  // namespace sluice::executor
