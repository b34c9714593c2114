#include "executor/job_process.h"

#include <fmt/core.h>
#include <unistd.h>

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
#include "executor/executor.h"
#include "executor/job_answer.h"
#include "executor/job_news.h"
#include "executor/job_process.pb.h"
#include "executor/local_cluster.h"
#include "executor/processes/job_log.h"
#include "executor/result_rows.h"
#include "executor/room_link.h"

namespace sluice::executor {
namespace {

std::string HostName() {
  constexpr size_t kLongest = 256;
  std::string name(kLongest, '\0');
  return gethostname(name.data(), name.size() - 1) == 0 ? name.substr(0, name.find('\0')) : "";
}

// Whoever listens is told; the answer is kept.
class SpeakingSink final : public ResultSink {
 public:
  explicit SpeakingSink(JobSpeaker& speaker) : speaker_(speaker) {}
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
  JobSpeaker& speaker_;
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

// As its log says, if it says anything.
void TellOfLog(catalog::Catalog& catalog, std::optional<int64_t> job, const JobLog& job_log) {
  const std::string path = job_log.PathIfWritten();
  if (job.has_value() && !path.empty()) {
    const Status told = catalog.jobs().AddEvents(
        *job, {{WallMicros(), "log_kept", fmt::format("{} on {}", path, HostName())}});
    if (!told.ok()) {
      log::Warn("where this log is cannot be written down: {}", told.message());
    }
  }
}

Status RunStatement(const JobConfig& config, const JobSecrets& secrets, JobSpeaker& speaker,
                    SpeakingSink& sink, const JobLog& job_log, const std::stop_token& stop) {
  // What ends the job: a signal, or who has started it.
  std::stop_source ended;
  const auto end = [&ended] { ended.request_stop(); };
  const std::stop_callback<std::function<void()>> by_signal(stop, end);
  const std::stop_callback<std::function<void()>> by_launcher(speaker.cancelled(), end);
  ASSIGN_OR_RETURN(
      const catalog::Database database,
      catalog::OpenDatabase({config.source_url(), secrets.source()},
                            {config.catalog_url(), secrets.catalog()}, ended.get_token()));
  const std::unique_ptr<catalog::Catalog> catalog = database.catalog->For({config.owner()});
  catalog::DataSource::StatementSession session;
  for (const JobConfig::Setting& setting : config.session()) {
    session.emplace_back(setting.name(), setting.value());
  }
  RETURN_IF_ERROR(database.source->BeginStatementAs(session, ended.get_token()));
  ASSIGN_OR_RETURN(const std::unique_ptr<LocalCluster> cluster, ClusterOf(config));
  Context context{*database.source,   *catalog,          config.user(),
                  config.statement(), ended.get_token(), cluster.get()};
  std::optional<int64_t> begun;
  context.on_job = [&speaker, &begun](int64_t job) {
    begun = job;
    speaker.Begun(job);
  };
  context.stopped_because = [&stop](Status outcome) -> Status {
    if (outcome.code() != Code::kCancelled || !stop.stop_requested()) {
      return outcome;
    }
    return Unavailable("the process that ran the job was ended by a signal")
        .Hint("run the statement again");
  };
  const Status status = Execute(config.plan(), context, sink);
  TellOfLog(*catalog, begun, job_log);
  speaker.Ended(status.ok() ? sink.Answer() : AnswerBytes(status));
  database.source->EndStatement();
  cluster->closer().WaitUntilClosed(stop);
  return status;
}

}  // namespace

int RunJobProcess(const std::string& config, const std::string& secret, int launcher,
                  const std::stop_token& stop) {
  constexpr int kFailed = 1;
  const auto speaker = JobSpeaker::Open(launcher);
  if (!speaker.ok()) {
    return kFailed;
  }
  JobConfig parsed;
  JobSecrets secrets;
  SpeakingSink sink(**speaker);
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
