#include "executor/train_on_master.h"

#include <fmt/core.h>

#include <condition_variable>
#include <optional>

#include "base/mutex.h"
#include "catalog/data_source.h"
#include "executor/child_process.h"
#include "executor/executor.h"
#include "executor/job_record.h"
#include "executor/local_fleet.h"
#include "executor/master.pb.h"

namespace sluice::executor {
namespace {

// A master hands its fleet back within two seconds of SIGTERM; after this it is killed.
constexpr double kMasterGraceSeconds = 4;

void WriteMetrics(const std::vector<std::pair<std::string, double>>& metrics,
                  google::protobuf::RepeatedPtrField<MetricValue>* to) {
  for (const auto& [name, value] : metrics) {
    MetricValue* metric = to->Add();
    metric->set_name(name);
    metric->set_value(value);
  }
}

std::vector<std::pair<std::string, double>> ReadMetrics(
    const google::protobuf::RepeatedPtrField<MetricValue>& from) {
  std::vector<std::pair<std::string, double>> metrics;
  for (const MetricValue& metric : from) {
    metrics.emplace_back(metric.name(), metric.value());
  }
  return metrics;
}

elastic::Progress FromMessage(const ProgressMessage& message) {
  elastic::Progress progress;
  progress.rows_done = message.rows_done();
  progress.rows_total = message.rows_total();
  progress.rows_per_second = message.rows_per_second();
  progress.epoch = message.epoch();
  progress.epochs = message.epochs();
  progress.loss = message.loss();
  progress.metrics = ReadMetrics(message.metrics());
  progress.workers = message.workers();
  progress.seconds_left = message.seconds_left();
  return progress;
}

MasterMessage ToMessage(const elastic::Progress& progress) {
  MasterMessage message;
  ProgressMessage* to = message.mutable_progress();
  to->set_rows_done(progress.rows_done);
  to->set_rows_total(progress.rows_total);
  to->set_rows_per_second(progress.rows_per_second);
  to->set_epoch(progress.epoch);
  to->set_epochs(progress.epochs);
  to->set_loss(progress.loss);
  WriteMetrics(progress.metrics, to->mutable_metrics());
  to->set_workers(progress.workers);
  to->set_seconds_left(progress.seconds_left);
  return message;
}

MasterMessage ToMessage(const TrainReport& report, const catalog::Job& job) {
  MasterMessage message;
  OutcomeMessage* to = message.mutable_outcome();
  to->set_schema(report.version.schema);
  to->set_name(report.version.name);
  to->set_version(report.version.version);
  to->set_type(report.version.type);
  to->set_loss(report.loss);
  to->set_rows(report.rows);
  to->set_epochs(report.epochs);
  to->set_seconds(report.seconds);
  WriteMetrics(report.metrics, to->mutable_metrics());
  to->set_rows_read(job.rows_read);
  to->set_rows_trained(job.rows_trained);
  to->set_rows_retried(job.rows_retried);
  to->set_rows_skipped(job.rows_skipped);
  return message;
}

MasterMessage ToMessage(const Status& error) {
  MasterMessage message;
  for (const Diagnostic& diagnostic : error.diagnostics()) {
    DiagnosticMessage* to = message.mutable_error()->add_diagnostics();
    to->set_code(static_cast<int>(diagnostic.code));
    to->set_sqlstate(diagnostic.sqlstate);
    to->set_message(diagnostic.message);
    to->set_detail(diagnostic.detail);
    to->set_hint(diagnostic.hint);
  }
  return message;
}

Status FromMessage(const ErrorMessage& error) {
  Status status;
  for (const DiagnosticMessage& diagnostic : error.diagnostics()) {
    status.Add(Status(static_cast<Code>(diagnostic.code()), diagnostic.message())
                   .SqlState(diagnostic.sqlstate())
                   .Detail(diagnostic.detail())
                   .Hint(diagnostic.hint()));
  }
  return status;
}

TrainReport FromMessage(const OutcomeMessage& outcome, int64_t job) {
  TrainReport report;
  report.version.schema = outcome.schema();
  report.version.name = outcome.name();
  report.version.version = outcome.version();
  report.version.type = outcome.type();
  report.version.job = job;
  report.loss = outcome.loss();
  report.rows = outcome.rows();
  report.epochs = outcome.epochs();
  report.seconds = outcome.seconds();
  report.metrics = ReadMetrics(outcome.metrics());
  return report;
}

// What the gateway knows of the master that it started.
class MasterWatch {
 public:
  explicit MasterWatch(const elastic::ProgressCallback& progress) : progress_(progress) {}

  void OnMessage(const std::string& bytes) {
    MasterMessage message;
    if (!message.ParseFromString(bytes)) {
      return;  // a torn message: the exit says what happened
    }
    if (message.has_progress()) {
      progress_(FromMessage(message.progress()));
      return;
    }
    const MutexLock lock(mutex_);
    last_ = std::move(message);
  }

  void OnEvent(const elastic::FleetEvent& event) {
    if (event.kind == elastic::FleetEvent::Kind::kExited) {
      const MutexLock lock(mutex_);
      exit_ = event;
      changed_.notify_all();
    }
  }

  // Until the master has exited; asks it to stop once `stop` is requested.
  elastic::FleetEvent WaitForExit(std::stop_token stop, const std::function<void()>& ask_to_stop) {
    bool asked = false;
    MutexLock lock(mutex_);
    while (!exit_) {
      if (stop.stop_requested() && !asked) {
        asked = true;
        lock.native().unlock();
        ask_to_stop();
        lock.native().lock();
        continue;
      }
      if (asked) {
        changed_.wait(lock.native());
      } else {
        changed_.wait(lock.native(), stop,
                      [this]() NO_THREAD_SAFETY_ANALYSIS { return exit_.has_value(); });
      }
    }
    return *exit_;
  }

  MasterMessage last() {
    const MutexLock lock(mutex_);
    return last_;
  }

 private:
  const elastic::ProgressCallback& progress_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  MasterMessage last_ GUARDED_BY(mutex_);
  std::optional<elastic::FleetEvent> exit_ GUARDED_BY(mutex_);
};

Result<TrainReport> ReadOutcome(const MasterMessage& last, const elastic::FleetEvent& exit,
                                JobRecord& job) {
  if (last.has_error()) {
    return FromMessage(last.error());
  }
  if (!last.has_outcome()) {
    return Internal(fmt::format("the master process ended with exit code {} and no answer",
                                exit.exit_code))
        .Detail(exit.message);
  }
  const OutcomeMessage& outcome = last.outcome();
  job.job().rows_read = outcome.rows_read();
  job.job().rows_trained = outcome.rows_trained();
  job.job().rows_retried = outcome.rows_retried();
  job.job().rows_skipped = outcome.rows_skipped();
  return FromMessage(outcome, job.id());
}

// The master's own life, once its configuration is read.
Status RunMaster(const MasterConfig& config, const std::string& secret, std::stop_token stop) {
  ASSIGN_OR_RETURN(const auto source, catalog::OpenDataSource(config.source_url(), secret));
  ASSIGN_OR_RETURN(catalog::Job description, source->jobs().Find(config.job()));
  const auto job = JobRecord::Adopt(source->jobs(), std::move(description), std::move(stop));
  ASSIGN_OR_RETURN(const auto fleet, LocalFleet::Make({config.binary(), nullptr}));
  const auto progress = [](const elastic::Progress& now) {
    static_cast<void>(SendToLauncher(ToMessage(now).SerializeAsString()));  // for people only
  };
  const Result<TrainReport> report =
      TrainAndCommit(config.plan(), *source, *job, fleet.get(), progress);
  RETURN_IF_ERROR(job->Finish(report.status()));
  return SendToLauncher(ToMessage(*report, job->job()).SerializeAsString());
}

}  // namespace

Result<TrainReport> TrainOnMaster(const plan::TrainPlan& plan, Context& context, JobRecord& job,
                                  const elastic::ProgressCallback& progress) {
  MasterConfig config;
  config.set_source_url(context.source.url());
  config.set_job(job.id());
  config.set_binary(context.binary);
  *config.mutable_plan() = plan;

  elastic::ProcessSpec spec;
  spec.role = elastic::Role::kMaster;
  spec.name = fmt::format("job{}-master", job.id());
  spec.config = config.SerializeAsString();
  spec.secret = context.source.secret();
  spec.priority = plan.strategy().priority();

  MasterWatch watch(progress);
  ASSIGN_OR_RETURN(
      const auto fleet,
      LocalFleet::Make({context.binary, [&watch](const std::string&, const std::string& bytes) {
                          watch.OnMessage(bytes);
                        }}));
  fleet->Watch([&watch](const elastic::FleetEvent& event) { watch.OnEvent(event); });
  RETURN_IF_ERROR(fleet->Launch(spec));
  Status stopped;
  const elastic::FleetEvent exit = watch.WaitForExit(
      job.stop_token(), [&] { stopped = fleet->Stop(spec.name, kMasterGraceSeconds); });
  RETURN_IF_ERROR(stopped);
  const MasterMessage last = watch.last();
  if (job.stop_token().stop_requested() && !last.has_outcome()) {
    return Cancelled("the training was cancelled");
  }
  return ReadOutcome(last, exit, job);
}

int RunMasterProcess(const std::string& config, const std::string& secret, std::stop_token stop) {
  constexpr int kFailed = 1;
  MasterConfig parsed;
  Status status = parsed.ParseFromString(config)
                      ? RunMaster(parsed, secret, std::move(stop))
                      : Internal("the master's configuration is damaged");
  if (status.ok()) {
    return 0;
  }
  const Status sent = SendToLauncher(ToMessage(status).SerializeAsString());
  if (!sent.ok()) {
    status.Add(sent);
  }
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return kFailed;
}

}  // namespace sluice::executor
