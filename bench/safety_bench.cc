// The cost of making a job survive its processes: two workers and two servers train a network with
// 64 and 32 units, first plainly; then with a journal of the master in SQLite; then with
// checkpoints written all the time. The variants take turns in one run; ratios are between
// neighbouring runs.
#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "bench/must.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/job_store.h"
#include "elastic/job/fleet_job.h"
#include "elastic/job/job_checkpoints.h"
#include "elastic/job/job_journal.h"
#include "tests/elastic/job/small_job.h"
#include "tests/elastic/job/thread_fleet.h"

namespace sluice::elastic {
namespace {

constexpr int64_t kRows = 60'000;
constexpr int64_t kShardRows = 1'000;
constexpr uint32_t kEpochs = 4;
constexpr int kRounds = 7;
constexpr int64_t kCheckpointSteps = 50;

class Bench {
 public:
  explicit Bench(std::string folder)
      : folder_(std::move(folder)),
        database_(Must(catalog::OpenCatalog("sqlite:" + folder_ + "/jobs.db"))),
        rows_(SmallSource(kRows)) {}

  // Rows a second; adds to `happened` what the job has written during the run.
  double Run(bool journaled, bool checkpoints, int64_t* happened) {
    plan::TrainPlan plan = TwoByTwoPlan(kEpochs, 128);
    if (checkpoints) {
      plan.mutable_checkpoints()->set_directory(folder_ + "/checkpoints");
      plan.mutable_checkpoints()->set_every_steps(kCheckpointSteps);
      plan.mutable_checkpoints()->set_keep(2);
      plan.mutable_checkpoints()->set_statement("safety_bench");
    }
    std::optional<JobCheckpoints> written = Must(JobCheckpoints::Open(plan));
    catalog::Job job;
    job.kind = "train";
    const int64_t id = Must(database_->jobs().Create(job));
    JobJournal journal(database_->jobs(), id);
    Succession succession;
    succession.journal = journaled ? &journal : nullptr;
    EventCallback events;
    events.on_event = [&](const std::string& kind, const std::string&) {
      *happened += kind == "checkpoint_written" ? 1 : 0;
    };
    ThreadFleet fleet(*rows_);
    catalog::DatasetSpec dataset = rows_->Spec(kShardRows);
    if (written.has_value()) {
      dataset = Must(written->DataToRun(dataset, nullptr));
    }
    const auto begin = std::chrono::steady_clock::now();
    const TrainOutcome outcome =
        Must(TrainOnFleet({.plan = plan,
                           .source = *rows_,
                           .dataset = dataset,
                           .events = events,
                           .checkpoints = written.has_value() ? &*written : nullptr},
                          fleet, "bench", succession));
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (journaled) {
      *happened += static_cast<int64_t>(Must(database_->jobs().Journal(id)).size());
    }
    if (written.has_value()) {
      const Status cleared = written->Finish();
      SLUICE_CHECK(cleared.ok(), cleared.message());
    }
    return static_cast<double>(outcome.rows_trained) / seconds;
  }

  void Compare(const char* what, bool journaled, bool checkpoints) {
    std::vector<double> plain, with, ratios;
    int64_t happened = 0;
    for (int round = 0; round < kRounds; ++round) {
      int64_t nothing = 0;
      plain.push_back(Run(false, false, &nothing));
      with.push_back(Run(journaled, checkpoints, &happened));
      ratios.push_back(with.back() / plain.back());
    }
    fmt::print(
        "{:<24} {:>9.0f} rows/s, without {:>9.0f}: ratio {:.3f} ({:.1f} a job; medians of {})\n",
        what, Median(with), Median(plain), Median(ratios), static_cast<double>(happened) / kRounds,
        kRounds);
    std::fflush(stdout);
  }

 private:
  const std::string folder_;
  const std::unique_ptr<catalog::Catalog> database_;
  const std::unique_ptr<testing::MemorySource> rows_;
};

}  // namespace
}  // namespace sluice::elastic

int main() {
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "sluice-safety-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    return 1;
  }
  {
    sluice::elastic::Bench bench(folder);
    bench.Compare("journal, groups", true, false);
    bench.Compare("checkpoints", false, true);
  }
  fs::remove_all(folder);
  return 0;
}
