#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "catalog/job_store.h"
#include "tests/chaos/disturber.h"
#include "tests/chaos/row_check.h"
#include "tests/chaos/schedule.h"
#include "tests/chaos/site.h"
#include "tests/chaos/statement.h"
#include "tests/support/postgres_server.h"

namespace sluice::chaos {

// How a job went, and what was wrong with it.
struct Verdict {
  std::vector<std::string> complaints;
  std::string refused;  // why it failed, where that was right
  Blows blows;
  std::vector<std::string> events;  // that the job recorded
  double seconds = 0;
  // The longest time in which no row became trained, from the first one on. Progress is told each
  // second and at the ends of epochs, so this is up to a second too much.
  double longest_pause = 0;
  int64_t epochs = 0;  // until it ended, or was stopped early
  int64_t retried_rows = 0;
  int64_t checked_rows = 0;  // one by one
  int64_t stalest = 0;       // gradient, where rows are checked
};

// Gateways over databases with all tables, which train one disturbed job after another.
class Trials {
 public:
  struct Options {
    std::string binary;
    Sizes sizes;
    bool postgres = true;  // where there is one; all is SQLite otherwise
  };
  static Result<std::unique_ptr<Trials>> Make(const Options& options);
  ~Trials();

  // Trains what the schedule says while it is carried out, and examines what is left: an answer in
  // time, the ledger, the model beside the one of an undisturbed run, single rows, no process, no
  // table, no file. A job may fail where parameters had two copies, both were taken at once, and
  // there are no checkpoints; or its checkpoints were tampered with: clearly, and leaving nothing.
  // An error: there is nothing to compare with (the undisturbed run failed).
  Result<Verdict> Run(Schedule schedule);

 private:
  struct Reference {
    double seconds = 0;  // the least that any job of the kind took: machines are busy at times
    std::string sha256;
    double auc = 0;
    double told_auc = 0;  // by the training, of its validation rows
    // Of undisturbed runs, the one of a single worker included: with fewer workers gradients are
    // fresher, and an asynchronous job that loses some may come out better than one that does not.
    double least_auc = 0, best_auc = 0;
  };
  struct Trained {
    Status status;
    RecordingSink answer;
    double seconds = 0;
    double longest_pause = 0;
  };
  explicit Trials(const Options& options) : options_(options) {}
  Status Open();
  Site& SiteOf(const Job& job) { return job.postgres ? *postgres_ : *sqlite_; }
  std::filesystem::path CheckpointsOf() const { return folder_ / "checkpoints" / kModel; }

  Trained Train(const Job& job, int workers);
  Result<Reference*> ReferenceOf(Job job);
  Result<Reference> Measure(const Job& job);
  Result<std::map<std::string, std::string>> Shown(const Job& job, const std::string& statement);

  // Each adds what it finds wrong.
  Status CheckFailure(const Job& job, const Trained& trained, Verdict* verdict);
  Status CheckLedger(const Job& job, const Trained& trained, Verdict* verdict);
  Status CheckModel(const Job& job, const Reference& reference, Verdict* verdict);
  Status CheckSingleRows(const Job& job, int64_t number, Verdict* verdict);
  Result<catalog::Job> NewestTraining(const Job& job);
  Status TellEvents(const Job& job, Verdict* verdict);
  Status CheckNothingIsLeft(const Job& job, bool succeeded, Verdict* verdict);

  const Options options_;
  std::unique_ptr<testing::PostgresTestDatabase> database_;
  std::filesystem::path folder_;
  std::unique_ptr<Site> sqlite_, postgres_;
  std::map<bool, std::vector<std::string>> tables_;  // that are there when nothing runs
  std::map<Job, Reference> references_;
};

}  // namespace sluice::chaos
