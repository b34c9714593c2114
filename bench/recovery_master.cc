// A job's master is killed (SIGKILL): the time until its successor hands out tasks, and the rows
// that are trained again. Real processes over a SQLite file; one line per mode, next to the limit.
#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "bench/measure.h"
#include "bench/must.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/job_store.h"
#include "elastic/master/journal.pb.h"
#include "executor/executor.h"
#include "executor/local/local_cluster.h"
#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "tests/support/recording_sink.h"

namespace {

using namespace sluice;

constexpr double kLimitSeconds = 2;
constexpr int kKills = 10;  // per mode

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Whether the successor of this many masters has written transitions of its own: tasks flow.
bool Flows(catalog::JobStore& jobs, int64_t job, int64_t term) {
  bool begun = false;
  const std::vector<std::string> entries = Must(jobs.Journal(job));
  for (const std::string& bytes : entries) {
    elastic::JournalEntry entry;
    if (!entry.ParseFromString(bytes)) {
      std::exit(1);
    }
    if (begun && entry.transitions_size() > 0) {
      return true;
    }
    begun = begun || (entry.has_everything() && entry.everything().term() >= term);
  }
  return false;
}

Status Train(const std::string& url, const std::string& attributes, executor::LocalCluster& cluster,
             const std::stop_token& stop) {
  const catalog::Database database = Must(catalog::OpenDatabase(url));
  const std::string sql =
      "SELECT a, b, y FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[8], "
      "train.epoch=100000, " +
      attributes + " LABEL y INTO m";
  const auto statements = Must(parser::Parse(sql));
  const plan::Plan plan = Must(planner::MakePlan(std::get<parser::TrainStatement>(statements.at(0)),
                                                 *database.source, database.catalog->models(), {}));
  RecordingSink sink;
  executor::Context context{*database.source, *database.catalog, "bench", sql, stop, &cluster};
  return executor::Execute(plan, context, sink);
}

void Measure(const std::string& url, const std::string& mode, const std::string& attributes,
             const std::string& binary, int64_t job) {
  executor::LocalCluster::Options machine;
  machine.binary = binary;
  machine.slots.slots = 8;
  executor::LocalCluster cluster(machine);
  const auto catalog = Must(catalog::OpenCatalog(url));
  std::stop_source stop;
  std::jthread training([&] {
    const Status status = Train(url, attributes, cluster, stop.get_token());
    if (status.code() != Code::kCancelled) {
      fmt::print(stderr, "{}: {}\n", mode, status.ToString());
      std::_Exit(1);
    }
  });
  const std::string master = fmt::format("job{}-master", job);
  std::vector<double> seconds;
  double killed = 0;
  for (int64_t term = 1; term <= kKills + 1; ++term) {
    while (!Flows(catalog->jobs(), job, term)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (term > 1) {
      seconds.push_back(Seconds() - killed);
    }
    // Long enough for progress to reach the gateway, which ends a job whose masters achieve
    // nothing.
    std::this_thread::sleep_for(std::chrono::milliseconds(700 + 37 * term));
    if (term <= kKills) {
      killed = Seconds();
      kill(Must(cluster.ProcessId(master)), SIGKILL);
    }
  }
  stop.request_stop();
  training.join();
  int lost = 0;
  for (const catalog::JobEvent& event : Must(catalog->jobs().Events(job))) {
    lost += event.kind == "worker_lost" || event.kind == "server_lost" ? 1 : 0;
  }
  const double median = Median(seconds);
  const double worst = Quantile(seconds, 0.95);
  fmt::print("{:<20} {:>5} {:>10.3f} s {:>9.3f} s {:>9.0f} s {:>8.1f}x {:>9}\n", mode,
             seconds.size(), median, worst, kLimitSeconds, kLimitSeconds / worst, lost);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string binary = argc > 1 ? argv[1] : SLUICE_BINARY;
  std::string folder =
      (std::filesystem::temp_directory_path() / "sluice-recovery-master-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    return 1;
  }
  const std::string url = "sqlite:" + folder + "/bench.db";
  Must(Must(catalog::OpenDataSource(url))
           ->Execute("CREATE TABLE points AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT "
                     "i + 1 FROM n WHERE i < 200000) SELECT i, (i * 7919 % 1000) / 500.0 - 1 AS a, "
                     "(i * 104729 % 997) / 500.0 - 1 AS b, ((i * 7919 % 1000) + (i * 104729 % 997) "
                     "> 1000) AS y FROM n",
                     nullptr, {}));
  fmt::print("master killed -> tasks flow again\n");
  fmt::print("{:<20} {:>5} {:>12} {:>11} {:>11} {:>9} {:>9}\n", "mode", "kills", "median", "95 %",
             "limit", "ratio", "lost");
  int64_t job = 0;
  Measure(url, "asynchronous", "engine.num_workers=2, engine.num_ps=2", binary, ++job);
  Measure(url, "bounded staleness", "engine.num_workers=2, engine.num_ps=2, engine.staleness=3",
          binary, ++job);
  Measure(url, "synchronous", "engine.num_workers=2, engine.num_ps=2, engine.sync=true", binary,
          ++job);
  Measure(url, "all-reduce", "engine.num_workers=2, engine.strategy='allreduce'", binary, ++job);
  std::filesystem::remove_all(folder);
  return 0;
}
