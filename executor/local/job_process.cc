#include "executor/local/job_process.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/guarded.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "elastic/job/job_journal.h"
#include "executor/executor.h"
#include "executor/jobs/job_answer.h"
#include "executor/jobs/lost_jobs.h"
#include "executor/local/job_news.h"
#include "executor/local/job_process.pb.h"
#include "executor/local/local_cluster.h"
#include "executor/local/room_link.h"
#include "executor/processes/job_log.h"
#include "executor/result_rows.h"
#include "executor/training/train_again.h"

namespace sluice::executor {
namespace {

constexpr int kEndedBySignal = 143;

std::string HostName() {
  constexpr size_t kLongest = 256;
  std::string name(kLongest, '\0');
  return gethostname(name.data(), name.size() - 1) == 0 ? name.substr(0, name.find('\0')) : "";
}

// Passes output to the listeners, and keeps the answer.
class PublishingSink final : public ResultSink {
 public:
  explicit PublishingSink(JobPublisher& speaker) : speaker_(speaker) {}
  Status Header(const Schema& schema) override {
    rows_.emplace(schema);
    return OkStatus();
  }
  Status Rows(const RowBatch& batch) override {
    for (size_t r = 0; r < batch.rows; ++r) {
      std::vector<Value> row;
      for (const RowBatch::Column& column : batch.columns) {
        row.push_back(column.ValueAt(r));
      }
      rows_->Add(std::move(row));
    }
    return OkStatus();
  }
  void Notice(const std::string& message) override { speaker_.Notice(message); }
  void Progress(const elastic::Progress& progress) override { speaker_.Progress(progress); }
  void Done(const std::string& tag) override { tag_ = tag; }

  std::string Answer() const { return AnswerBytes(rows_.value_or(ResultRows(Schema())), tag_); }

 private:
  JobPublisher& speaker_;
  std::optional<ResultRows> rows_;
  std::string tag_;
};

Result<std::unique_ptr<LocalCluster>> ClusterOf(const JobConfig& config) {
  LocalCluster::Options options;
  options.slots.slots = config.slots();
  options.slots.memory_bytes = config.memory_bytes();
  if (config.room().empty()) {
    return std::make_unique<LocalCluster>(options);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Room> room,
                   RoomLink::Make(config.room(), {config.slots(), config.memory_bytes()}));
  return std::make_unique<LocalCluster>(options, std::move(room));
}

// Tells the client where the log is, if there is one.
void ReportLog(catalog::Catalog& catalog, int64_t job, const JobLog& job_log) {
  const std::string path = job_log.PathIfWritten();
  if (!path.empty()) {
    const Status told = catalog.jobs().AddEvents(
        job, {{WallMicros(), "log_kept", fmt::format("{} on {}", path, HostName())}});
    if (!told.ok()) {
      log::Warn("where this log is cannot be written down: {}", told.message());
    }
  }
}

// Becomes the job's runner. Aborted: another process has taken it over.
Status TakeRow(const JobConfig::Row& row, catalog::JobStore& jobs) {
  const catalog::JobRunner here = ThisProcess();
  ASSIGN_OR_RETURN(const bool taken,
                   jobs.TakeOver(row.job(), {here.place, row.pid(), row.started()}, here));
  if (!taken) {
    return Status(Code::kAborted,
                  fmt::format("another process already continues job {}", row.job()));
  }
  if (!row.lost()) {
    return OkStatus();
  }
  RETURN_IF_ERROR(jobs.AddEvents(row.job(), {{WallMicros(), kTakenOverEvent,
                                              fmt::format("its process was lost: process {} on {} "
                                                          "goes on with it",
                                                          here.pid, HostName())}}));
  elastic::JobJournal journal(jobs, row.job());
  return ForgetJournal(journal);  // its masters, workers and servers are lost, too
}

bool StillRunsHere(int64_t job, catalog::JobStore& jobs) {
  catalog::JobRunner here = ThisProcess();
  here.seen_micros = WallMicros();
  const Result<bool> ours = jobs.Seen(job, here);
  return ours.ok() && *ours;
}

Status RunStatement(const JobConfig& config, const JobSecrets& secrets, JobPublisher& speaker,
                    PublishingSink& sink, const JobLog& job_log, const std::stop_token& stop) {
  // A signal means eviction (the machine goes down): the next process that has the login continues
  // the job, as after a kill.
  const std::stop_callback evicted(stop, [] { std::_Exit(kEndedBySignal); });
  const std::stop_token ended = speaker.cancelled();
  ASSIGN_OR_RETURN(const catalog::Database database,
                   catalog::OpenDatabase({config.source_url(), secrets.source()},
                                         {config.catalog_url(), secrets.catalog()}, ended));
  const std::unique_ptr<catalog::Catalog> catalog = database.catalog->For({config.owner()});
  std::unique_ptr<LocalCluster> cluster;
  catalog::DataSource::StatementSession session;
  for (const JobConfig::Setting& setting : config.session()) {
    session.emplace_back(setting.name(), setting.value());
  }
  const int64_t job = config.row().job();
  RETURN_IF_ERROR(TakeRow(config.row(), catalog->jobs()));
  if (config.row().lost()) {
    static_cast<void>(database.source->DropLeftovers());  // of this job's earlier processes
  }
  Status status = [&]() -> Status {
    RETURN_IF_ERROR(database.source->BeginStatementWith(session, ended));
    ASSIGN_OR_RETURN(cluster, ClusterOf(config));
    Context context{*database.source,   *catalog, config.user(),
                    config.statement(), ended,    cluster.get()};
    context.job = job;
    context.export_root = "";  // no job writes models' files
    context.request = config.training_job_uid();
    context.on_job = [&speaker](int64_t begun) { speaker.Begun(begun); };
    return Execute(config.plan(), context, sink);
  }();
  if (!status.ok() && StillRunsHere(job, catalog->jobs())) {
    // If it ended properly, its row says so already.
    const auto state = status.code() == Code::kCancelled ? catalog::JobState::kCancelled
                                                         : catalog::JobState::kFailed;
    static_cast<void>(
        catalog->jobs().Abandon(job, WallMicros(), state, status.ToString(), AnswerBytes(status)));
  }
  ReportLog(*catalog, job, job_log);
  speaker.Ended(status.ok() ? sink.Answer() : AnswerBytes(status));
  database.source->EndStatement();
  if (cluster != nullptr) {
    cluster->closer().WaitUntilClosed(stop);
  }
  return status;
}

}  // namespace

int RunJobProcess(const std::string& config, const std::string& secret, int launcher,
                  const std::stop_token& stop) {
  constexpr int kFailed = 1;
  const auto speaker = JobPublisher::Open(launcher);
  if (!speaker.ok()) {
    return kFailed;
  }
  JobConfig parsed;
  JobSecrets secrets;
  PublishingSink sink(**speaker);
  const bool read = parsed.ParseFromString(config) && secrets.ParseFromString(secret);
  const JobLog job_log(read && parsed.log_level() > 0
                           ? static_cast<log::Level>(parsed.log_level() - 1)
                           : log::Level::kWarn);
  const Status status = Guarded("job", [&]() -> Status {
    return read ? RunStatement(parsed, secrets, **speaker, sink, job_log, stop)
                : Internal("the configuration of the job's process is damaged");
  });
  if (!status.ok()) {
    (*speaker)->Ended(AnswerBytes(status));  // of a job that has not begun; else it is known
  }
  return status.ok() ? 0 : kFailed;
}

}  // namespace sluice::executor
