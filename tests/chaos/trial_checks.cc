#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "tests/chaos/trial.h"

namespace sluice::chaos {
namespace {

namespace fs = std::filesystem;

// An asynchronous job that learns with a large rate varies by chance.
constexpr double kToleranceWithPatience = 20;  // factor
// Difference between a training's figure for validation rows and a later evaluation of the same
// rows.
constexpr double kSameAuc = 1e-6;

}  // namespace

Status Trials::CheckFailure(const Job& job, const Trained& trained, Verdict* verdict) {
  const std::string why = trained.status.ToString();
  const auto says = [&](std::string_view words) { return why.find(words) != std::string::npos; };
  const bool lost = verdict->injected.both_copies && !job.checkpoints && says("the only copy");
  const bool refused = verdict->injected.files && says("checkpoint");
  if (!lost && !refused) {
    verdict->complaints.push_back(why);
  } else {
    verdict->refused = why;
  }
  ASSIGN_OR_RETURN(const catalog::Job training, NewestTraining(job));
  const bool late = trained.status.code() == Code::kCancelled;  // it was cancelled then
  if (training.state != (late ? catalog::JobState::kCancelled : catalog::JobState::kFailed)) {
    verdict->complaints.push_back(
        fmt::format("a job that failed is {}", catalog::JobStateName(training.state)));
  }
  ASSIGN_OR_RETURN(const RecordingSink versions,
                   SiteOf(job).Ask(fmt::format("SELECT count(*) AS versions FROM {};",
                                               SiteOf(job).CatalogTable("model_versions"))));
  if (versions.Number("versions") != 0) {
    verdict->complaints.push_back("there is a model of a job that failed");
    return SiteOf(job).Ask(fmt::format("DROP MODEL {};", kModel)).status();
  }
  return OkStatus();
}

Status Trials::CheckLedger(const Job& job, const Trained& trained, Verdict* verdict) {
  const Sizes& sizes = options_.sizes;
  const auto number = static_cast<int64_t>(trained.answer.Number("job"));
  ASSIGN_OR_RETURN(auto shown, Shown(job, fmt::format("SHOW JOB {};", number)));
  ASSIGN_OR_RETURN(auto model, Shown(job, fmt::format("DESCRIBE MODEL {};", kModel)));
  const auto complain = [&](const std::string& what) { verdict->complaints.push_back(what); };
  if (shown["job state"] != "SUCCEEDED") {
    complain("the job's state is " + shown["job state"]);
  }
  const auto rows = static_cast<int64_t>(trained.answer.Number("rows"));
  const auto epochs = static_cast<int64_t>(trained.answer.Number("epochs"));
  const int wanted = EpochsOf(job, sizes);
  if (job.patience > 0 ? epochs < 1 || epochs > wanted : epochs != wanted) {
    complain(fmt::format("{} epochs of {}", epochs, wanted));
  }
  if (const std::string all = std::to_string(rows * epochs); shown["rows trained"] != all) {
    complain(fmt::format("{} rows trained instead of {}", shown["rows trained"], all));
  }
  if (shown["rows skipped"] != "0") {
    complain(shown["rows skipped"] + " rows skipped");
  }
  // The rows that are not trained are for validation.
  const bool own_table = job.patience > 0;
  const std::string validation =
      fmt::format("\"validation_rows\":{},", own_table ? sizes.held_out_rows() : sizes.rows - rows);
  if (model["lineage details"].find(validation) == std::string::npos ||
      (own_table && rows != sizes.rows)) {
    complain(fmt::format("{} rows, and not {} in {}", rows, validation, model["lineage details"]));
  }
  verdict->epochs = epochs;
  verdict->retried_rows = std::strtoll(shown["rows retried"].c_str(), nullptr, 10);
  return job.table == Table::kIds ? CheckSingleRows(job, number, verdict) : OkStatus();
}

Status Trials::CheckSingleRows(const Job& job, int64_t number, Verdict* verdict) {
  Site& site = SiteOf(job);
  RETURN_IF_ERROR(site.Ask(fmt::format("SELECT * FROM ids TO PREDICT chaos_scored.guess WITH "
                                       "predict.extra_outputs='probability' USING {};",
                                       kModel))
                      .status());
  ASSIGN_OR_RETURN(
      const RecordingSink scores,
      site.Ask("SELECT i.id AS id, CAST(i.held AS bigint) AS held, CAST(i.answer AS bigint) AS "
               "answer, s.probability AS probability "
               "FROM ids AS i JOIN chaos_scored AS s ON s.id = i.id;"));
  std::vector<ScoredRow> rows;
  rows.reserve(scores.rows.size());
  for (const std::vector<Value>& row : scores.rows) {
    rows.push_back({std::get<int64_t>(row.at(0)), std::get<int64_t>(row.at(1)) != 0,
                    std::get<int64_t>(row.at(2)) != 0, std::get<double>(row.at(3))});
  }
  RowExpectation expected;
  expected.same_bits = SameBits(job.mode);
  expected.times = EpochsOf(job, options_.sizes);
  if (job.mode == Mode::kBoundedStaleness) {
    // While a worker computes, each other worker may move from the largest allowed lag to the
    // largest allowed lead, and so may each that replaces a dead one.
    ASSIGN_OR_RETURN(const auto events, site.catalog().jobs().Events(number));
    const auto started = std::count_if(events.begin(), events.end(), [](const auto& event) {
      return event.kind == "worker_started";
    });
    expected.most_stale =
        static_cast<double>((std::max<int64_t>(started, kWorkers) - 1) * (2 * kStaleness + 1));
  }
  const RowFindings findings = CheckRows(rows, expected);
  if (findings.rows + findings.validation_rows != options_.sizes.rows) {
    verdict->complaints.push_back(fmt::format("{} and {} rows of {} are scored", findings.rows,
                                              findings.validation_rows, options_.sizes.rows));
  }
  if (!findings.good()) {
    verdict->complaints.push_back(Describe(findings));
  }
  verdict->checked_rows = findings.rows;
  verdict->stalest = findings.stalest;
  return site.Ask("DROP TABLE chaos_scored;").status();
}

Status Trials::CheckModel(const Job& job, const Reference& reference, Verdict* verdict) {
  const auto complain = [&](const std::string& what) { verdict->complaints.push_back(what); };
  ASSIGN_OR_RETURN(const RecordingSink versions,
                   SiteOf(job).Ask(fmt::format("SELECT count(*) AS versions FROM {};",
                                               SiteOf(job).CatalogTable("model_versions"))));
  if (versions.Number("versions") != 1) {
    complain(fmt::format("the model was stored {} times", versions.Number("versions")));
  }
  ASSIGN_OR_RETURN(const Reference model, Measure(job));
  if (SameBits(job.mode) && model.sha256 != reference.sha256) {
    complain(fmt::format("weights {} instead of {} (AUC {:.5f}, {:.5f})", model.sha256,
                         reference.sha256, model.auc, reference.auc));
  }
  if (job.patience > 0 && std::abs(model.auc - model.told_auc) >
                              kSameAuc + std::abs(reference.auc - reference.told_auc)) {
    complain(
        fmt::format("its weights are not those that were judged best: AUC {:.6f} then, {:.6f} "
                    "now",
                    model.told_auc, model.auc));
  }
  // A few undisturbed runs differ less than many would: allow the same range again on either side.
  const double tolerance =
      reference.best_auc - reference.least_auc +
      options_.sizes.auc_tolerance * (job.patience > 0 ? kToleranceWithPatience : 1);
  if (!(model.auc >= reference.least_auc - tolerance &&
        model.auc <= reference.best_auc + tolerance)) {
    complain(fmt::format("AUC {:.5f} instead of {:.5f} to {:.5f}", model.auc, reference.least_auc,
                         reference.best_auc));
  }
  return OkStatus();
}

Result<catalog::Job> Trials::NewestTraining(const Job& job) {
  ASSIGN_OR_RETURN(const std::vector<catalog::Job> jobs, SiteOf(job).catalog().jobs().List());
  for (const catalog::Job& each : jobs) {
    if (each.kind == "train") {
      return each;
    }
  }
  return NotFound("there is no job");
}

Status Trials::ReportEvents(const Job& job, Verdict* verdict) {
  ASSIGN_OR_RETURN(const catalog::Job training, NewestTraining(job));
  ASSIGN_OR_RETURN(const std::vector<catalog::JobEvent> events,
                   SiteOf(job).catalog().jobs().Events(training.id));
  for (const catalog::JobEvent& event : events) {
    verdict->events.push_back(
        fmt::format("{:.2f} s: {}: {}",
                    static_cast<double>(event.micros - verdict->injected.began_micros) / 1e6,
                    event.kind, event.detail));
  }
  return OkStatus();
}

Status Trials::CheckNothingIsLeft(const Job& job, bool succeeded, Verdict* verdict) {
  Site& site = SiteOf(job);
  const auto complain = [&](const std::string& what) { verdict->complaints.push_back(what); };
  for (const auto& process : site.gateway().Processes("")) {
    complain(fmt::format("process {} is left", process->pid()));
    process->Send(SIGKILL);
  }
  for (const char* table : {"job_journal", "model_chunks"}) {
    ASSIGN_OR_RETURN(const RecordingSink left, site.Ask(fmt::format("SELECT count(*) AS n FROM {};",
                                                                    site.CatalogTable(table))));
    if (left.Number("n") != 0) {
      complain(fmt::format("{} rows of {} are left", left.Number("n"), table));
    }
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> tables, site.Tables());
  if (tables != tables_[job.postgres]) {
    complain(fmt::format("the tables are {} instead of {}", fmt::join(tables, ", "),
                         fmt::join(tables_[job.postgres], ", ")));
  }
  // A job that failed leaves the checkpoints that the next run of its statement continues from.
  for (const auto& entry : fs::recursive_directory_iterator(CheckpointsOf().parent_path())) {
    const std::string name = entry.path().filename();
    if (name.starts_with("draft-") || (succeeded && name.starts_with("checkpoint-"))) {
      complain("a checkpoint is left: " + name);
    }
  }
  fs::remove_all(CheckpointsOf());
  std::vector<fs::path> left;
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    const std::string name = entry.path().filename();
    const bool of_job_logs = name.starts_with("sluice-") || name.ends_with(".log");
    if (name != "tmp" && name != "checkpoints" && !name.starts_with("chaos.db") && !of_job_logs) {
      left.push_back(entry.path());
    }
  }
  for (const fs::path& path : left) {
    complain("a file is left: " + path.filename().string());
    fs::remove_all(path);
  }
  return OkStatus();
}

}  // namespace sluice::chaos
