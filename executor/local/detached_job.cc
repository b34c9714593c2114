#include "executor/local/detached_job.h"

#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.h"
#include "catalog/catalog.h"
#include "executor/cluster.h"
#include "executor/executor.h"
#include "executor/jobs/job_answer.h"
#include "executor/local/job_news.h"
#include "executor/local/job_process.pb.h"
#include "executor/local/job_takeover.h"
#include "executor/local/new_job.h"
#include "executor/result_rows.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

constexpr std::chrono::milliseconds kPollInterval{200};

// In JobConfig's form: the job logs at our level.
int LogLevel() {
  int level = 0;
  while (level < static_cast<int>(log::Level::kOff) && !log::Enabled(log::Level(level))) {
    ++level;
  }
  return level + 1;
}

JobConfig ConfigOf(const plan::Plan& plan, const Context& context, const DetachedJob& detached) {
  JobConfig config;
  *config.mutable_plan() = plan;
  config.set_statement(context.statement);
  config.set_user(context.user);
  config.set_owner(context.catalog.principal().role);
  config.set_source_url(context.source.url());
  config.set_catalog_url(context.catalog.url());
  for (const auto& [name, value] : detached.session) {
    JobConfig::Setting* setting = config.add_session();
    setting->set_name(name);
    setting->set_value(value);
  }
  config.set_may_be_taken_over(context.acts_as_login);
  config.set_room(detached.room);
  config.set_training_job(detached.training_job);
  config.set_training_job_uid(detached.training_job_uid);
  config.set_log_level(LogLevel());
  return config;
}

// A job's process, as seen by the process that started it.
class JobFollower {
 public:
  JobFollower(Context& context, ResultSink& sink) : context_(context), sink_(sink) {}

  Status Start(const plan::Plan& plan, const DetachedJob& detached) {
    JobSecrets secrets;
    secrets.set_source(context_.source.secret());
    secrets.set_catalog(context_.catalog.secret());
    ASSIGN_OR_RETURN(StartedJob started,
                     context_.cluster->StartJob(context_, ConfigOf(plan, context_, detached),
                                                std::move(secrets)));
    job_ = started.job;
    listener_ = std::move(started.listener);
    return OkStatus();
  }
  int64_t job() const { return job_; }

  // Waits until the job has begun; returns the error if it has not.
  Status AwaitBegin() {
    bool cancelled = false;
    while (!begun_ && !over_) {
      Hear(cancelled ? std::stop_token() : context_.stop);
      if (!cancelled && context_.stop.stop_requested()) {
        cancelled = true;
        listener_->Cancel();
      }
    }
    if (begun_) {
      return OkStatus();
    }
    Status why = answer_.has_value() ? ErrorOfAnswer(*answer_) : OkStatus();
    if (why.ok()) {
      why = Internal("the process of the job ended before the job had begun")
                .Hint("run the statement again");
    }
    AbandonNewJob(context_.catalog.jobs(), job_, why);
    return why;
  }

  Status AwaitEnd(const std::function<bool()>& lets_go) {
    while (!answer_.has_value()) {
      while (!over_) {
        Hear(cancelled_ ? std::stop_token() : context_.stop);
        if (!cancelled_ && context_.stop.stop_requested()) {
          if (lets_go()) {
            return Cancelled(fmt::format("job {} goes on: WAIT JOB {}", job_, job_));
          }
          Cancel();
        }
      }
      // The process does not report its end if it was killed, or if no process listened for long.
      if (!answer_.has_value()) {
        RETURN_IF_ERROR(LookAtRow());
      }
    }
    return SendAnswer(*answer_, sink_);
  }

 private:
  void Hear(const std::stop_token& stop) {
    JobListener::News news = listener_->Next(stop, std::chrono::steady_clock::time_point::max());
    if (std::holds_alternative<JobListener::Begun>(news)) {
      begun_ = true;
    } else if (const auto* notice = std::get_if<std::string>(&news)) {
      sink_.Notice(*notice);
    } else if (const auto* progress = std::get_if<elastic::Progress>(&news)) {
      sink_.Progress(*progress);
    } else if (auto* ended = std::get_if<JobListener::Ended>(&news)) {
      answer_ = std::move(ended->answer);
      over_ = true;
    } else {
      over_ = over_ || std::holds_alternative<JobListener::Gone>(news);
    }
  }

  void Cancel() {
    cancelled_ = true;
    listener_->Cancel();
    const Status asked = ours_ ? OkStatus() : context_.catalog.jobs().RequestCancel(job_);
    if (!asked.ok()) {
      log::Debug("job={} need not be cancelled: {}", job_, asked.message());
    }
  }

  void Attach(std::unique_ptr<JobListener> listener, bool ours) {
    sink_.Notice(fmt::format("the process of job {} was lost: another one goes on", job_));
    listener_ = std::move(listener);
    ours_ = ours;
    over_ = false;
  }

  // For a job whose process is gone: returns how it ended, or attaches to the process that
  // continues it.
  Status LookAtRow() {
    catalog::JobStore& jobs = context_.catalog.jobs();
    ASSIGN_OR_RETURN(std::vector<TakenOver> taken, TakeOverLostJobs(context_));
    for (TakenOver& one : taken) {
      // Aborted: another process was faster; the row names it.
      if (one.job == job_ && one.listener.status().code() != Code::kAborted) {
        RETURN_IF_ERROR(one.listener.status().Because(fmt::format(
            "the process of job {} was lost, and the job waits (WAIT JOB {})", job_, job_)));
        Attach(*std::move(one.listener), true);
        return OkStatus();
      }
    }
    ASSIGN_OR_RETURN(const catalog::Job job, jobs.Find(job_));
    if (catalog::HasEnded(job.state)) {
      ASSIGN_OR_RETURN(answer_, jobs.Answer(job_));
      return OkStatus();
    }
    ASSIGN_OR_RETURN(const std::vector<catalog::Job> running, jobs.Running());
    for (const catalog::Job& one : running) {  // another process has started that one
      auto listener =
          one.id == job_ ? ListenToJob(one.runner) : Result<std::unique_ptr<JobListener>>(nullptr);
      if (listener.ok() && *listener != nullptr) {
        Attach(*std::move(listener), false);
        return OkStatus();
      }
    }
    std::this_thread::sleep_for(kPollInterval);
    return context_.stop.stop_requested()
               ? Cancelled(fmt::format("cancelled while job {} ended", job_))
               : OkStatus();
  }

  Context& context_;
  ResultSink& sink_;
  std::unique_ptr<JobListener> listener_;
  int64_t job_ = 0;
  bool begun_ = false;
  std::optional<std::string> answer_;
  bool over_ = false;
  bool cancelled_ = false;
  bool ours_ = true;  // we started the job's process, and can tell it to stop
};

void ReportJob(int64_t job, const Context& context) {
  if (context.on_job) {
    context.on_job(job);
  }
}

}  // namespace

Schema StartedJobColumns() {
  return Schema{{{"job", DataType::kInt64, "bigint"},
                 {"state", DataType::kText, "text"},
                 {"hint", DataType::kText, "text"}}};
}

Status AnswerWithJob(const plan::Plan& plan, Context& context, const DetachedJob& detached,
                     ResultSink& sink) {
  JobFollower follower(context, sink);
  RETURN_IF_ERROR(follower.Start(plan, detached));
  const int64_t job = follower.job();
  ReportJob(job, context);
  RETURN_IF_ERROR(follower.AwaitBegin());
  ResultRows rows(StartedJobColumns());
  rows.Add({job, std::string(catalog::JobStateName(catalog::JobState::kRunning)),
            fmt::format("WAIT JOB {}", job)});
  RETURN_IF_ERROR(rows.SendTo(sink));
  sink.Done(plan.has_train() ? "TRAIN" : plan.has_predict() ? "PREDICT" : "EVALUATE");
  return OkStatus();
}

Status FollowJob(const plan::Plan& plan, Context& context, const DetachedJob& detached,
                 const std::function<bool()>& lets_go, ResultSink& sink) {
  JobFollower follower(context, sink);
  RETURN_IF_ERROR(follower.Start(plan, detached));
  ReportJob(follower.job(), context);
  RETURN_IF_ERROR(follower.AwaitBegin());
  if (detached.outlives_client) {
    sink.OutlivesClient(follower.job());
  }
  return follower.AwaitEnd(lets_go);
}

}  // namespace sluice::executor
