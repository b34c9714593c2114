#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "catalog/job_store.h"
#include "tests/chaos/fault_injector.h"
#include "tests/chaos/row_check.h"
#include "tests/chaos/schedule.h"
#include "tests/chaos/site.h"
#include "tests/chaos/statement.h"
#include "tests/support/postgres_server.h"

namespace sluice::chaos {

// The result of a job, and the faults found.
struct Verdict {
  std::vector<std::string> complaints;
  std::string refused;  // why it failed, if that was right
  InjectedFaults injected;
  std::vector<std::string> events;  // recorded by the job
  double seconds = 0;
  // The longest time without progress in trained rows, from the first one on. Progress is reported
  // each second and at the ends of epochs, so this may be up to a second too long.
  double longest_pause = 0;
  int64_t epochs = 0;  // until it ended, or was stopped early
  int64_t retried_rows = 0;
  int64_t checked_rows = 0;  // one by one
  int64_t stalest = 0;       // gradient, where rows are checked
};

// Gateways over databases with all tables, which train disturbed jobs one after another.
class Trials {
 public:
  struct Options {
    std::string binary;
    Sizes sizes;
    bool postgres = true;  // also use it; otherwise only SQLite
  };
  static Result<std::unique_ptr<Trials>> Make(const Options& options);
  ~Trials();

  // Trains the schedule's job while the schedule is carried out, and checks the outcome: an answer
  // in time, the ledger, the model compared with an undisturbed run's, single rows, no process,
  // table or file left behind. A job may fail if both copies of parameters were lost at once and
  // there are no checkpoints, or if its checkpoints were tampered with; it must then fail clearly
  // and leave nothing. An error: there is no reference (the undisturbed run failed).
  Result<Verdict> Run(Schedule schedule);

 private:
  struct Reference {
    double seconds = 0;  // the shortest time of any such job: machines are busy at times
    std::string sha256;
    double auc = 0;
    double told_auc = 0;  // reported by the training, for its validation rows
    // Over undisturbed runs, including one with a single worker: with fewer workers gradients are
    // fresher, so an asynchronous job that loses some may be better than one that does not.
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

  // Each adds the faults that it finds.
  Status CheckFailure(const Job& job, const Trained& trained, Verdict* verdict);
  Status CheckLedger(const Job& job, const Trained& trained, Verdict* verdict);
  Status CheckModel(const Job& job, const Reference& reference, Verdict* verdict);
  Status CheckSingleRows(const Job& job, int64_t number, Verdict* verdict);
  Result<catalog::Job> NewestTraining(const Job& job);
  Status ReportEvents(const Job& job, Verdict* verdict);
  Status CheckNothingIsLeft(const Job& job, bool succeeded, Verdict* verdict);

  const Options options_;
  std::unique_ptr<testing::PostgresTestDatabase> database_;
  std::filesystem::path folder_;
  std::unique_ptr<Site> sqlite_, postgres_;
  std::map<bool, std::vector<std::string>> tables_;  // existing tables when nothing runs
  std::map<Job, Reference> references_;
};

}  // namespace sluice::chaos
