#include "tests/chaos/trial.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <variant>

#include "server/sample.h"

namespace sluice::chaos {
namespace {

namespace fs = std::filesystem;

constexpr char kModel[] = "chaos_model";
constexpr int kSlots = 8;
constexpr int kWorkers = 4, kServers = 3, kStaleness = 3;
// A disturbed job that takes so much longer than its longest faults explain does not end at all.
constexpr double kPatienceSeconds = 120;
// Asynchronous trainings of the same rows differ by their order; measured on rows that none of them
// has seen.
constexpr int64_t kHeldOutRows = 40'000;

std::string TableName(Table table) {
  return std::string(NameOf(table));
}

// Shows whatever a statement answers as text.
std::string TextOf(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? *text : "";
}

// Asks a statement to stop when it has had its time.
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

Status MakeTable(Table table, int64_t rows, catalog::DataSource& source) {
  constexpr uint64_t kSampleSeed = 1;
  ASSIGN_OR_RETURN(const auto generator, server::MakeSample(NameOf(table), kSampleSeed));
  const std::string name = TableName(table);
  RETURN_IF_ERROR(
      server::WriteSample(*generator, rows + kHeldOutRows, {"", name}, source, [](int64_t) {}, {})
          .status());
  for (const std::string& sql :
       {fmt::format("CREATE TABLE {0}_held_out AS SELECT * FROM {0} WHERE rowid > {1}", name, rows),
        fmt::format("DELETE FROM {} WHERE rowid > {}", name, rows)}) {
    RETURN_IF_ERROR(source.Execute(sql, nullptr, {}).status());
  }
  return Status();
}

}  // namespace

Result<std::unique_ptr<Trials>> Trials::Make(const std::string& binary, const Sizes& sizes) {
  std::string pattern = fs::temp_directory_path() / "sluice-chaos-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) {
    return Internal("no temporary directory");
  }
  std::unique_ptr<Trials> trials(new Trials(pattern, sizes));
  fs::create_directory(trials->folder_ / "tmp");
  setenv("TMPDIR", (trials->folder_ / "tmp").c_str(), 1);  // of the gateway and all its processes
  GatewayProcess::Options options;
  options.binary = binary;
  options.source = "sqlite:" + (trials->folder_ / "chaos.db").string();
  options.slots = kSlots;
  ASSIGN_OR_RETURN(trials->source_, catalog::OpenDataSource(options.source));
  for (const Table table : {Table::kCensus, Table::kClicks}) {
    RETURN_IF_ERROR(MakeTable(table, sizes.rows, *trials->source_));
  }
  ASSIGN_OR_RETURN(trials->gateway_, GatewayProcess::Start(options));
  ASSIGN_OR_RETURN(trials->client_, trials->gateway_->Connect());
  return trials;
}

Trials::~Trials() {
  client_.reset();
  gateway_.reset();
  source_.reset();
  fs::remove_all(folder_);
}

int Trials::Epochs(Mode mode) const {
  const bool synchronous = mode == Mode::kSynchronous || mode == Mode::kAllReduce;
  return synchronous ? sizes_.synchronous_epochs : sizes_.epochs;
}

std::string Trials::Statement(Mode mode, Table table, int workers) const {
  std::string engine = mode == Mode::kAllReduce
                           ? std::string("engine.strategy='allreduce'")
                           : fmt::format("engine.num_ps={}, engine.replicas=1", kServers);
  if (mode == Mode::kSynchronous) {
    engine += ", engine.sync=true";
  } else if (mode == Mode::kBoundedStaleness) {
    engine += fmt::format(", engine.staleness={}", kStaleness);
  }
  const bool census = table == Table::kCensus;
  return fmt::format(
      "SELECT {} FROM {} TO TRAIN DNNClassifier WITH model.hidden_units=[16], "
      "model.optimizer='Adagrad', optimizer.learning_rate=0.05, train.batch_size=256, "
      "train.epoch={}, engine.num_workers={}, engine.seed=1, {} LABEL {} "
      "INTO {};",
      census
          ? "*"
          : "\"label\", i1, i2, i3, i4, i5, i6, c2, c5, c6, c8, c9, c14, c17, c20, c22, c23, c25",
      TableName(table), Epochs(mode), workers, engine, census ? "income" : "\"label\"", kModel);
}

Trials::Trained Trials::Train(Mode mode, Table table, int workers) {
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
  trained.status = client_->Run(Statement(mode, table, workers), alarm.token(), trained.answer);
  trained.answer.on_progress = nullptr;
  trained.seconds = SecondsBetween(begin, clock.Now());
  if (alarm.token().stop_requested()) {
    trained.status = Cancelled(fmt::format("no end after {} seconds", kPatienceSeconds));
  }
  return trained;
}

Result<std::map<std::string, std::string>> Trials::Shown(const std::string& statement) {
  ASSIGN_OR_RETURN(const RecordingSink shown, Ask(*client_, statement));
  std::map<std::string, std::string> values;
  for (const std::vector<Value>& row : shown.rows) {
    values[TextOf(row.at(0)) + " " + TextOf(row.at(1))] = TextOf(row.at(2));
  }
  return values;
}

Result<std::vector<std::string>> Trials::Tables() {
  ASSIGN_OR_RETURN(const RecordingSink answer,
                   Ask(*client_, "SELECT name FROM sqlite_schema ORDER BY name;"));
  std::vector<std::string> tables;
  for (const std::vector<Value>& row : answer.rows) {
    tables.push_back(TextOf(row.at(0)));
  }
  return tables;
}

Result<Trials::Reference> Trials::Measure(Table table) {
  Reference reference;
  ASSIGN_OR_RETURN(auto model, Shown(fmt::format("DESCRIBE MODEL {};", kModel)));
  reference.sha256 = model["lineage sha256 of the weights"];
  if (reference.sha256.empty()) {
    return Internal("DESCRIBE MODEL does not tell the digest of the weights");
  }
  ASSIGN_OR_RETURN(const RecordingSink scores,
                   Ask(*client_, fmt::format("SELECT * FROM {}_held_out TO EVALUATE {};",
                                             TableName(table), kModel)));
  reference.auc = scores.Number("auc");
  return reference;
}

Result<const Trials::Reference*> Trials::ReferenceOf(Mode mode, Table table) {
  const auto found = references_.find({mode, table});
  if (found != references_.end()) {
    return &found->second;
  }
  Reference reference;
  const bool same_bits = mode == Mode::kSynchronous || mode == Mode::kAllReduce;
  // One worker has one course; of several, each run has another.
  const std::vector<int> runs =
      same_bits ? std::vector{kWorkers} : std::vector{1, kWorkers, kWorkers, kWorkers};
  for (const int workers : runs) {
    const Trained trained = Train(mode, table, workers);
    RETURN_IF_ERROR(trained.status);
    const Reference before = reference;
    ASSIGN_OR_RETURN(reference, Measure(table));
    reference.seconds = trained.seconds;
    const bool first = before.sha256.empty();
    reference.least_auc = first ? reference.auc : std::min(before.least_auc, reference.auc);
    reference.best_auc = first ? reference.auc : std::max(before.best_auc, reference.auc);
    if (tables_.empty()) {
      ASSIGN_OR_RETURN(tables_, Tables());
    }
    RETURN_IF_ERROR(Ask(*client_, fmt::format("DROP MODEL {};", kModel)).status());
  }
  return &references_.emplace(std::pair(mode, table), reference).first->second;
}

Status Trials::CheckLedger(const Schedule& schedule, const Trained& trained, Verdict* verdict) {
  const auto job = static_cast<int64_t>(trained.answer.Number("job"));
  ASSIGN_OR_RETURN(auto shown, Shown(fmt::format("SHOW JOB {};", job)));
  ASSIGN_OR_RETURN(auto model, Shown(fmt::format("DESCRIBE MODEL {};", kModel)));
  const auto complain = [&](const std::string& what) { verdict->complaints.push_back(what); };
  if (shown["job state"] != "SUCCEEDED") {
    complain("the job's state is " + shown["job state"]);
  }
  const auto rows = static_cast<int64_t>(trained.answer.Number("rows"));
  const std::string trained_rows = std::to_string(rows * Epochs(schedule.mode));
  if (shown["rows trained"] != trained_rows) {
    complain(fmt::format("{} rows trained instead of {}", shown["rows trained"], trained_rows));
  }
  if (shown["rows skipped"] != "0") {
    complain(shown["rows skipped"] + " rows skipped");
  }
  const std::string validation =
      fmt::format("\"validation_rows\":{},", sizes_.rows - rows);  // what is not trained is these
  if (model["lineage details"].find(validation) == std::string::npos) {
    complain(fmt::format("not {} in {}", validation, model["lineage details"]));
  }
  verdict->retried_rows = std::strtoll(shown["rows retried"].c_str(), nullptr, 10);
  return OkStatus();
}

Status Trials::CheckModel(const Schedule& schedule, const Reference& reference, Verdict* verdict) {
  ASSIGN_OR_RETURN(const RecordingSink versions,
                   Ask(*client_, "SELECT count(*) AS versions FROM sluice_model_versions;"));
  if (versions.Number("versions") != 1) {
    verdict->complaints.push_back(
        fmt::format("the model was stored {} times", versions.Number("versions")));
  }
  ASSIGN_OR_RETURN(const Reference model, Measure(schedule.table));
  const bool same_bits = schedule.mode == Mode::kSynchronous || schedule.mode == Mode::kAllReduce;
  if (same_bits && model.sha256 != reference.sha256) {
    verdict->complaints.push_back(fmt::format("weights {} instead of {} (AUC {:.5f}, {:.5f})",
                                              model.sha256, reference.sha256, model.auc,
                                              reference.auc));
  }
  if (!(model.auc >= reference.least_auc - sizes_.auc_tolerance &&
        model.auc <= reference.best_auc + sizes_.auc_tolerance)) {
    verdict->complaints.push_back(fmt::format("AUC {:.5f} instead of {:.5f} to {:.5f}", model.auc,
                                              reference.least_auc, reference.best_auc));
  }
  return OkStatus();
}

Status Trials::CheckNothingIsLeft(Verdict* verdict) {
  const auto complain = [&](const std::string& what) { verdict->complaints.push_back(what); };
  for (const auto& process : gateway_->Processes("")) {
    complain(fmt::format("process {} is left", process->pid()));
    process->Send(SIGKILL);
  }
  ASSIGN_OR_RETURN(const RecordingSink journal,
                   Ask(*client_, "SELECT count(*) AS entries FROM sluice_job_journal;"));
  if (journal.Number("entries") != 0) {
    complain(fmt::format("{} entries of the journal are left", journal.Number("entries")));
  }
  ASSIGN_OR_RETURN(const RecordingSink chunks,
                   Ask(*client_, "SELECT count(*) AS chunks FROM sluice_model_chunks;"));
  if (chunks.Number("chunks") != 0) {
    complain(fmt::format("{} chunks of models are left", chunks.Number("chunks")));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> tables, Tables());
  if (tables != tables_) {
    complain(fmt::format("the tables are {} instead of {}", fmt::join(tables, ", "),
                         fmt::join(tables_, ", ")));
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    const std::string name = entry.path().filename();
    if (name != "tmp" && !name.starts_with("chaos.db")) {
      complain("a file is left: " + name);
      fs::remove(entry.path());
    }
  }
  return OkStatus();
}

Result<Verdict> Trials::Run(const Schedule& schedule) {
  ASSIGN_OR_RETURN(const Reference* reference, ReferenceOf(schedule.mode, schedule.table));
  Disturber disturber(*gateway_, source_->jobs(), schedule, reference->seconds);
  const Trained trained = Train(schedule.mode, schedule.table, kWorkers);
  Verdict verdict;
  verdict.blows = disturber.Finish();
  verdict.seconds = trained.seconds;
  verdict.longest_pause = trained.longest_pause;
  const auto check = [&](const Status& status) {
    if (!status.ok()) {
      verdict.complaints.push_back(status.ToString());
    }
  };
  check(trained.status);
  if (trained.status.ok()) {
    check(CheckLedger(schedule, trained, &verdict));
    check(CheckModel(schedule, *reference, &verdict));
    check(Ask(*client_, fmt::format("DROP MODEL {};", kModel)).status());
  }
  check(CheckNothingIsLeft(&verdict));
  return verdict;
}

}  // namespace sluice::chaos
