// The cost of a process's death for a running job: a real gateway (8 slots, so that four workers
// run on any machine), real processes, SIGKILL. Each figure is printed next to its limit.
//
// "Training elsewhere" and "accepted again" are proven by the next end of an epoch: it cannot come
// before every row that was handed back has been trained, or while a push is missing on a server.
// So those figures are too high by the rest of the epoch, which is also printed; where the limit is
// half a second, epochs have a quarter of the rows.
#include <fmt/core.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "bench/measure.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/job_store.h"
#include "catalog/model_store.h"
#include "server/sample/sample.h"
#include "tests/chaos/gateway_process.h"

namespace sluice::chaos {
namespace {

namespace fs = std::filesystem;
using Events = std::vector<catalog::JobEvent>;

constexpr int64_t kRows = 40'000, kFewRows = 10'000;
constexpr int kWorkers = 4, kServers = 3;
constexpr double kWorkerLimit = 0.5, kServerLimit = 2, kEndLimit = 0.2, kCostLimit = 0.15;

std::string TrainText(int64_t rows, int epochs) {
  return fmt::format(
      "SELECT * FROM census_{} TO TRAIN DNNClassifier WITH model.hidden_units=[32, 16], "
      "train.batch_size=128, train.epoch={}, split.kind='none', engine.num_workers={}, "
      "engine.num_ps={}, engine.replicas=1 LABEL income INTO recovery_bench;",
      rows, epochs, kWorkers, kServers);
}

void Print(const std::string& what, double figure, double limit) {
  fmt::print("  {:58} {:7.3f}   limit {:5.2f}   ratio {:.2f}\n", what, figure, limit,
             figure / limit);
  std::fflush(stdout);
}

// The first event of a kind after a time; nullptr: there is none.
const catalog::JobEvent* FirstAfter(const Events& events, int64_t micros, const std::string& kind) {
  for (const catalog::JobEvent& event : events) {
    if (event.micros > micros && event.kind == kind) {
      return &event;
    }
  }
  return nullptr;
}

double Seconds(int64_t from, int64_t to) {
  return static_cast<double>(to - from) / 1e6;
}

class Bench {
 public:
  static Result<std::unique_ptr<Bench>> Make(const std::string& binary) {
    auto bench = std::make_unique<Bench>();
    std::string pattern = fs::temp_directory_path() / "sluice-recovery-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) {
      return Internal("no temporary directory");
    }
    bench->folder_ = pattern;
    GatewayProcess::Options options;
    options.binary = binary;
    options.source = "sqlite:" + pattern + "/bench.db";
    ASSIGN_OR_RETURN(bench->source_, catalog::OpenDataSource(options.source));
    ASSIGN_OR_RETURN(bench->catalog_, catalog::OpenCatalog(options.source));
    ASSIGN_OR_RETURN(const auto generator, server::MakeSample("census", 1));
    for (const int64_t rows : {kRows, kFewRows}) {
      RETURN_IF_ERROR(server::WriteSample(*generator, rows, {"", fmt::format("census_{}", rows)},
                                          *bench->source_, [](int64_t) {}, {})
                          .status());
    }
    ASSIGN_OR_RETURN(bench->gateway_, GatewayProcess::Start(options));
    ASSIGN_OR_RETURN(bench->client_, bench->gateway_->Connect());
    return bench;
  }
  ~Bench() {
    client_.reset();
    gateway_.reset();
    source_.reset();
    catalog_.reset();
    fs::remove_all(folder_);
  }

  Status Run() {
    RETURN_IF_ERROR(KillWorkers());
    RETURN_IF_ERROR(KillServers());
    RETURN_IF_ERROR(Ends());
    return Throughput();
  }

 private:
  struct Job {
    int64_t id = 0;
    double seconds = 0;
    Events events;
    std::vector<int64_t> kills;  // wall clock
  };

  // Trains while `disturb` is called repeatedly, after the pauses that it asks for, from the end of
  // the first epoch on. It returns whether it has killed a process.
  Result<Job> Train(int64_t rows, int epochs, double pause,
                    const std::function<bool(Job&)>& disturb) {
    Job job;
    std::jthread thread([&](const std::stop_token& stop) {
      std::mt19937_64 random(1);
      while (disturb && !stop.stop_requested()) {
        // Never in step with the epochs.
        std::this_thread::sleep_for(std::chrono::duration<double>(
            pause * (0.9 + 0.2 * static_cast<double>(random() % 1000) / 1000)));
        if (stop.stop_requested() || !HasBegun()) {
          continue;
        }
        const int64_t now = WallMicros();
        if (disturb(job)) {
          job.kills.push_back(now);
        }
      }
    });
    const SteadyClock clock;
    const TimePoint begin = clock.Now();
    const Result<RecordingSink> answer = Ask(*client_, TrainText(rows, epochs));
    job.seconds = SecondsBetween(begin, clock.Now());
    thread.request_stop();
    thread.join();
    RETURN_IF_ERROR(answer.status());
    job.id = static_cast<int64_t>(answer->Number("job"));
    ASSIGN_OR_RETURN(job.events, catalog_->jobs().Events(job.id));
    return job;
  }
  bool HasBegun() {
    const Result<Events> events = EventsNow();
    return events.ok() && FirstAfter(*events, 0, "epoch_done") != nullptr;
  }
  Result<Events> EventsNow() {
    ASSIGN_OR_RETURN(const auto jobs, catalog_->jobs().List());
    if (jobs.empty()) {
      return Events();
    }
    return catalog_->jobs().Events(jobs.front().id);
  }
  bool KillOne(const std::string& role, uint64_t pick) {
    const auto living = gateway_->Processes(role);
    return !living.empty() && living[pick % living.size()]->Send(SIGKILL);
  }

  Status KillWorkers() {
    std::mt19937_64 random(2);
    ASSIGN_OR_RETURN(const Job job,
                     Train(kFewRows, 240, 0.4, [&](Job&) { return KillOne("worker", random()); }));
    std::vector<double> requeued, trained;
    for (const int64_t kill : job.kills) {
      const catalog::JobEvent* back = FirstAfter(job.events, kill, "task_requeued");
      const catalog::JobEvent* end = FirstAfter(job.events, kill, "epoch_done");
      // Otherwise the process held nothing when it died.
      if (back != nullptr && end != nullptr && back->micros < end->micros) {
        requeued.push_back(Seconds(kill, back->micros));
        trained.push_back(Seconds(kill, end->micros));
      }
    }
    std::vector<double> epochs;
    for (size_t i = 1; i < job.events.size(); ++i) {
      const catalog::JobEvent* next = FirstAfter(job.events, job.events[i].micros, "epoch_done");
      if (job.events[i].kind == "epoch_done" && next != nullptr) {
        epochs.push_back(Seconds(job.events[i].micros, next->micros));
      }
    }
    fmt::print("worker killed ({} kills of workers that held rows, epochs of {:.3f} s)\n",
               trained.size(), Quantile(epochs, 0.5));
    Print("to its rows handed back, s, p50", Quantile(requeued, 0.5), kWorkerLimit);
    Print("the same, p95", Quantile(requeued, 0.95), kWorkerLimit);
    Print("to its rows trained by others and the epoch's end, s, p50", Quantile(trained, 0.5),
          kWorkerLimit);
    Print("the same, p95", Quantile(trained, 0.95), kWorkerLimit);
    return Status();
  }

  Status KillServers() {
    std::mt19937_64 random(3);
    ASSIGN_OR_RETURN(
        const Job job, Train(kRows, 60, 0.4, [&](Job& now) {
          // Not before all parameters are on two servers again.
          const Result<Events> events = EventsNow();
          const bool whole =
              now.kills.empty() ||
              (events.ok() && FirstAfter(*events, now.kills.back(), "partitions_moved") != nullptr);
          return whole && KillOne("ps", random());
        }));
    std::vector<double> served, trained;
    for (const int64_t kill : job.kills) {
      const catalog::JobEvent* lost = FirstAfter(job.events, kill, "server_lost");
      const catalog::JobEvent* end =
          lost == nullptr ? nullptr : FirstAfter(job.events, lost->micros, "epoch_done");
      if (end != nullptr) {
        served.push_back(Seconds(kill, lost->micros));
        trained.push_back(Seconds(kill, end->micros));
      }
    }
    fmt::print("parameter server killed ({} kills)\n", trained.size());
    Print("to its partitions served by others, s, p50", Quantile(served, 0.5), kServerLimit);
    Print("to all pushes accepted and the epoch's end, s, p50", Quantile(trained, 0.5),
          kServerLimit);
    Print("the same, longest", Quantile(trained, 1), kServerLimit);
    return Status();
  }

  Status Ends() {
    constexpr int kJobs = 9;
    std::vector<double> stored, answered;
    for (int i = 0; i < kJobs; ++i) {
      ASSIGN_OR_RETURN(const Job job, Train(kRows, 3, 0, {}));
      const int64_t end = WallMicros();
      ASSIGN_OR_RETURN(const auto model, catalog_->models().Find("", "recovery_bench", {}));
      int64_t last = 0;
      for (const catalog::JobEvent& event : job.events) {
        last = event.kind == "epoch_done" ? event.micros : last;
      }
      stored.push_back(Seconds(last, model.created_micros));
      answered.push_back(Seconds(last, end));
    }
    fmt::print("last report to the end ({} jobs)\n", kJobs);
    Print("parameters collected, processes ended, model stored, s, p50", Quantile(stored, 0.5),
          kEndLimit);
    Print("the client has its answer, s, p50", Quantile(answered, 0.5), kEndLimit);
    Print("the same, longest", Quantile(answered, 1), kEndLimit);
    return Status();
  }

  Status Throughput() {
    constexpr int kEpochs = 50, kRounds = 5;
    constexpr double kEvery = 2;
    std::mt19937_64 random(4);
    std::vector<double> calm, disturbed;
    size_t kills = 0;
    for (int round = 0; round < kRounds; ++round) {
      ASSIGN_OR_RETURN(const Job quiet, Train(kRows, kEpochs, 0, {}));
      ASSIGN_OR_RETURN(const Job job, Train(kRows, kEpochs, kEvery,
                                            [&](Job&) { return KillOne("worker", random()); }));
      calm.push_back(quiet.seconds);
      disturbed.push_back(job.seconds);
      kills += job.kills.size();
    }
    const double rows = static_cast<double>(kRows) * kEpochs;
    const double fast = rows / Quantile(calm, 0.5), slow = rows / Quantile(disturbed, 0.5);
    fmt::print("one of {} workers killed each {} s ({} kills in {} jobs)\n", kWorkers, kEvery,
               kills, kRounds);
    fmt::print("  rows/s undisturbed {:.0f}, disturbed {:.0f} (statement to answer, medians)\n",
               fast, slow);
    Print("share of the throughput that it costs", 1 - slow / fast, kCostLimit);
    return Status();
  }

  fs::path folder_;
  std::unique_ptr<catalog::DataSource> source_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::unique_ptr<GatewayProcess> gateway_;
  std::unique_ptr<server::GatewayClient> client_;
};

}  // namespace
}  // namespace sluice::chaos

int main(int argc, char** argv) {
  const auto bench = sluice::chaos::Bench::Make(argc > 1 ? argv[1] : SLUICE_BINARY);
  const sluice::Status status = bench.ok() ? (*bench)->Run() : bench.status();
  if (!status.ok()) {
    fmt::print(stderr, "recovery_bench: {}\n", status.ToString());
    return 1;
  }
  return 0;
}
