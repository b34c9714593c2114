#include "tests/chaos/trial.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace sluice::chaos {
namespace {

namespace fs = std::filesystem;

constexpr int kSlots = 8;
// A disturbed job that takes this much longer than its longest faults explain is taken to hang.
constexpr double kPatienceSeconds = 180;

// Asks a statement to stop when its time is over.
class Alarm {
 public:
  explicit Alarm(double seconds)
      : thread_([this, seconds](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          wake_.wait_for(lock, stop, std::chrono::duration<double>(seconds), [] { return false; });
          if (!stop.stop_requested()) {
            late_.request_stop();
          }
        }) {}
  std::stop_token token() const { return late_.get_token(); }

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::stop_source late_;
  std::jthread thread_;
};

}  // namespace

Result<std::unique_ptr<Trials>> Trials::Make(const Options& options) {
  std::unique_ptr<Trials> trials(new Trials(options));
  RETURN_IF_ERROR(trials->Open());
  return trials;
}

Status Trials::Open() {
  if (options_.postgres) {  // before TMPDIR is ours
    database_ = std::make_unique<testing::PostgresTestDatabase>();
  }
  std::string pattern = fs::temp_directory_path() / "sluice-chaos-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) {
    return Internal("no temporary directory");
  }
  folder_ = pattern;
  fs::create_directory(folder_ / "tmp");
  fs::create_directory(folder_ / "checkpoints");
  setenv("TMPDIR", (folder_ / "tmp").c_str(), 1);  // of the gateways and all their processes
  Site::Options site;
  site.binary = options_.binary;
  site.checkpoint_root = folder_ / "checkpoints";
  site.slots = kSlots;
  site.rows = options_.sizes.rows;
  site.held_out_rows = options_.sizes.held_out_rows();
  site.url = "sqlite:" + (folder_ / "chaos.db").string();
  ASSIGN_OR_RETURN(sqlite_, Site::Make(site));
  if (database_ != nullptr && !database_->url().empty()) {
    site.postgres = true;
    site.url = database_->url();
    ASSIGN_OR_RETURN(postgres_, Site::Make(site));
  }
  return OkStatus();
}

Trials::~Trials() {
  sqlite_.reset();
  postgres_.reset();
  std::error_code error;
  fs::remove_all(folder_, error);
}

Trials::Trained Trials::Train(const Job& job, int workers) {
  Trained trained;
  const SteadyClock clock;
  const TimePoint begin = clock.Now();
  TimePoint last{};
  int64_t rows = 0;
  trained.answer.on_progress = [&] {
    const TimePoint now = clock.Now();
    const int64_t done = trained.answer.progress.back().rows_done;
    if (done > rows) {
      trained.longest_pause =
          std::max(trained.longest_pause, rows > 0 ? SecondsBetween(last, now) : 0);
      rows = done;
      last = now;
    }
  };
  const Alarm alarm(kPatienceSeconds);
  trained.status = SiteOf(job).client().Run(StatementOf(job, options_.sizes, workers, kModel),
                                            alarm.token(), trained.answer);
  trained.answer.on_progress = nullptr;
  trained.seconds = SecondsBetween(begin, clock.Now());
  if (alarm.token().stop_requested()) {
    trained.status = Cancelled(fmt::format("no end after {} seconds", kPatienceSeconds));
  }
  return trained;
}

Result<std::map<std::string, std::string>> Trials::Shown(const Job& job,
                                                         const std::string& statement) {
  ASSIGN_OR_RETURN(const RecordingSink shown, SiteOf(job).Ask(statement));
  std::map<std::string, std::string> values;
  for (const std::vector<Value>& row : shown.rows) {
    values[TextOf(row.at(0)) + " " + TextOf(row.at(1))] = TextOf(row.at(2));
  }
  return values;
}

Result<Trials::Reference> Trials::Measure(const Job& job) {
  Reference reference;
  ASSIGN_OR_RETURN(auto model, Shown(job, fmt::format("DESCRIBE MODEL {};", kModel)));
  reference.sha256 = model["lineage sha256 of the weights"];
  if (reference.sha256.empty()) {
    return Internal("DESCRIBE MODEL does not tell the digest of the weights");
  }
  reference.told_auc = std::strtod(model["metric auc"].c_str(), nullptr);
  if (job.table != Table::kIds) {
    ASSIGN_OR_RETURN(const RecordingSink scores,
                     SiteOf(job).Ask(fmt::format("SELECT * FROM {}_held_out TO EVALUATE {};",
                                                 NameOf(job.table), kModel)));
    reference.auc = scores.Number("auc");
  }
  return reference;
}

Result<Trials::Reference*> Trials::ReferenceOf(Job job) {
  job.checkpoints = false;  // they have no effect
  const auto found = references_.find(job);
  if (found != references_.end()) {
    return &found->second;
  }
  Reference reference;
  // With one worker every run is the same; with several, each run differs.
  const std::vector<int> runs = SameBits(job.mode) || job.table == Table::kIds
                                    ? std::vector{kWorkers}
                                : job.patience > 0 ? std::vector{1, kWorkers}
                                                   : std::vector{1, kWorkers, kWorkers, kWorkers};
  for (const int workers : runs) {
    const Trained trained = Train(job, workers);
    RETURN_IF_ERROR(trained.status);
    const Reference before = reference;
    ASSIGN_OR_RETURN(reference, Measure(job));
    reference.seconds =
        before.seconds > 0 ? std::min(before.seconds, trained.seconds) : trained.seconds;
    const bool first = before.sha256.empty();
    reference.least_auc = first ? reference.auc : std::min(before.least_auc, reference.auc);
    reference.best_auc = first ? reference.auc : std::max(before.best_auc, reference.auc);
    RETURN_IF_ERROR(SiteOf(job).Ask(fmt::format("DROP MODEL {};", kModel)).status());
  }
  std::vector<std::string>& tables = tables_[job.postgres];
  if (tables.empty()) {
    ASSIGN_OR_RETURN(tables, SiteOf(job).Tables());
  }
  return &references_.emplace(job, reference).first->second;
}

Result<Verdict> Trials::Run(Schedule schedule) {
  schedule.job.postgres = schedule.job.postgres && postgres_ != nullptr;
  if (!schedule.job.postgres) {
    std::erase_if(schedule.faults, [](const Fault& f) { return f.kind == FaultKind::kDisconnect; });
  }
  const Job& job = schedule.job;
  ASSIGN_OR_RETURN(Reference* const reference, ReferenceOf(job));
  Site& site = SiteOf(job);
  FaultInjector fault_injector({site.gateway(), site.source(), site.catalog(),
                                job.checkpoints ? CheckpointsOf() : fs::path(), reference->seconds,
                                EpochsOf(job, options_.sizes)},
                               schedule);
  const Trained trained = Train(job, kWorkers);
  Verdict verdict;
  verdict.injected = fault_injector.Finish();
  verdict.seconds = trained.seconds;
  verdict.longest_pause = trained.longest_pause;
  const auto check = [&](const Status& status) {
    if (!status.ok()) {
      verdict.complaints.push_back(status.ToString());
    }
  };
  if (trained.status.ok()) {
    reference->seconds = std::min(reference->seconds, trained.seconds);
    check(CheckLedger(job, trained, &verdict));
    check(CheckModel(job, *reference, &verdict));
    check(site.Ask(fmt::format("DROP MODEL {};", kModel)).status());
  } else {
    check(CheckFailure(job, trained, &verdict));
  }
  check(ReportEvents(job, &verdict));
  check(CheckNothingIsLeft(job, trained.status.ok(), &verdict));
  return verdict;
}

}  // namespace sluice::chaos
