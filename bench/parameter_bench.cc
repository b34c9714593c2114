// How fast parameters are pulled and pushed: rows of 16 floats with Adagrad, batches of 4,096 rows,
// compared with a plain loop over the same bytes; then through gRPC on loopback, with and without
// replicas, for workers that only exchange and for workers that train a small network, and with
// TLS; the size of an exchange; and the effect of a checkpoint on pushes. One run, one process.
//   parameter_bench [in-process | replica | tls | checkpoints]    all of it, or only that, for a
//   profile
#include <fmt/core.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/measure.h"
#include "bench/parameter_job.h"
#include "elastic/job/direct_links.h"
#include "elastic/job/fleet_job.h"
#include "elastic/master/parameter_fleet.h"
#include "elastic/rpc/exchange_internal.h"
#include "elastic/rpc/grpc_links.h"
#include "elastic/rpc/parameter_control.h"
#include "elastic/server/parameter_service.h"
#include "elastic/storage/checkpoint.h"
#include "elastic/transport/job_key.h"
#include "planner/plan.pb.h"
#include "tests/elastic/job/small_job.h"
#include "tests/elastic/job/thread_fleet.h"

namespace sluice::elastic {
namespace {

constexpr uint32_t kPartitions = 64;
constexpr char kToken[] = "bench";

using Clock = std::chrono::steady_clock;

double RowsPerSecond(int batches, const std::function<void(int)>& batch) {
  const auto begin = Clock::now();
  for (int i = 0; i < batches; ++i) {
    batch(i);
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return static_cast<double>(batches) * kBatchRows / seconds;
}

double ProcessorSeconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void OnOneCore() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof(one), &one);
}

// Reads and writes the same bytes in the same rows, sequentially: a row's weights out, a gradient
// in, weights and slot read and written.
double StreamingRows() {
  std::vector<float> rows(static_cast<size_t>(kTableRows) * kDimension * 2, 0.5F);
  std::vector<float> gradients(kBatchRows * kDimension, 0.01F), out(gradients.size());
  size_t at = 0;
  return RowsPerSecond(kBatches, [&](int) {
    float* block = rows.data() + at;
    at = (at + kBatchRows * kDimension * 2) % (rows.size() - kBatchRows * kDimension * 2);
    for (size_t row = 0; row < kBatchRows; ++row) {
      float* values = block + row * kDimension * 2;
      for (size_t k = 0; k < kDimension; ++k) {
        out[row * kDimension + k] = values[k];
        values[kDimension + k] += gradients[row * kDimension + k];
        values[k] -= values[kDimension + k];
      }
    }
  });
}

void InProcess(const ParameterJob& job) {
  constexpr int kRounds = 5;
  std::vector<double> warm, lazy, limit;
  for (int round = 0; round < kRounds; ++round) {
    const auto shard = job.Shard(1, false);
    DirectParameterLink link(*shard, job.network());
    for (int i = 0; i < kBatches; ++i) {
      job.Exchange(link, job.ids(i), 0, i);
    }
    warm.push_back(RowsPerSecond(kBatches, [&](int i) { job.Exchange(link, job.ids(i), 1, i); }));
    std::vector<int64_t> fresh(kBatchRows);
    lazy.push_back(RowsPerSecond(kBatches, [&](int i) {
      std::iota(fresh.begin(), fresh.end(), kTableRows + int64_t{i} * int64_t{kBatchRows});
      job.Exchange(link, fresh, 2, i);
    }));
    limit.push_back(StreamingRows());
  }
  const auto print = [&](const char* what, const std::vector<double>& rates, const char* goal) {
    fmt::print("{:<23} {:6.2f} M rows/s{}  ratio to streaming {:.2f} (medians of {})\n", what,
               Median(rates) / 1e6, goal, Median(rates) / Median(limit), kRounds);
  };
  print("in process, one core", warm, "  goal 5.0");
  print("lazy initialisation", lazy, "  goal 5.0");
  print("streaming, same bytes", limit, "");
}

// Servers with real gRPC endpoints, and workers that push to them at the same time.
// On one machine the ends of a stream share memory, unless the server listens at every address.
constexpr char kOneMachine[] = "127.0.0.1", kEveryAddress[] = "0.0.0.0";

double ThroughStreams(const ParameterJob& job, uint32_t servers, bool replicas, int workers,
                      bool bf16 = false, const JobKey& key = kToken,
                      const char* host = kOneMachine) {
  std::vector<std::unique_ptr<ParameterShard>> shards;
  std::vector<std::unique_ptr<ParameterServer>> doors;
  std::map<ServerId, std::string> addresses;
  for (ServerId id; id < ServerId(servers); ++id) {
    shards.push_back(job.Shard(kPartitions, true));
    doors.push_back(ParameterServer::Start({host, key, id, nullptr}, *shards.back()).value());
    addresses.emplace(id, doors.back()->address());
  }
  const PartitionMap map = PlaceEvenly(addresses, kPartitions, replicas);
  const ParameterControl control(key, Term::First(), {});
  for (const auto phase : {ParameterControl::Phase::kFreeze, ParameterControl::Phase::kCreate}) {
    for (const auto& [id, address] : addresses) {
      const Status status = control.Install(address, map, phase);
      SLUICE_CHECK(status.ok(), status.message());
    }
  }
  const auto connect = [&] {
    return ConnectParameters(map, [&map](MapVersion) { return Result<PartitionMap>(map); }, key,
                             job.network(), bf16, {});
  };
  const auto warm = connect();
  for (int i = 0; i < kBatches; ++i) {
    job.Exchange(*warm, job.ids(i), 99, i);
  }
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (int w = 0; w < workers; ++w) {
      threads.emplace_back([&, w] {
        const auto link = connect();
        for (int i = 0; i < kBatches; ++i) {
          job.Exchange(*link, job.ids(i + w * 7), w, i);
        }
      });
    }
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return static_cast<double>(workers) * kBatches * kBatchRows / seconds;
}

// A whole job: two workers read rows from memory and train a network with 64 and 32 units.
double TrainedRows(bool replicas) {
  constexpr int64_t kRows = 60'000;
  constexpr uint32_t kEpochs = 4;
  static const auto source = SmallSource(kRows);
  plan::TrainPlan plan = TwoByTwoPlan(kEpochs, 512);
  plan.mutable_strategy()->set_replicas(replicas ? 1 : 0);
  ThreadFleet fleet(*source);
  const auto begin = Clock::now();
  const Result<TrainOutcome> outcome = TrainOnFleet(
      {.plan = plan, .source = *source, .dataset = source->Spec(5'000)}, fleet, "bench");
  SLUICE_CHECK(outcome.ok(), outcome.status().ToString());
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return static_cast<double>(outcome->rows_trained) / seconds;
}

// With and without something take turns, so that other load on the machine affects both.
void Compare(const char* what, const char* with_what, const char* goal, double unit,
             const std::function<double(bool)>& rows) {
  std::vector<double> ratios, busy[2];
  double with = 0, without = 0;
  const auto measured = [&](bool changed) {
    const double processor = ProcessorSeconds();
    double rate = 0;
    const double seconds = Seconds([&] { rate = rows(changed); });
    busy[changed ? 1 : 0].push_back((ProcessorSeconds() - processor) / seconds);
    return rate;
  };
  for (int round = 0; round < 5; ++round) {
    const double plain = measured(false), changed = measured(true);
    ratios.push_back(changed / plain);
    with += changed / 5;
    without += plain / 5;
  }
  fmt::print("{}: {:6.2f} M rows/s, {:.1f} processors busy\n", what, without / unit,
             Median(busy[0]));
  fmt::print(
      "  {:<21} {:6.2f} M rows/s, {:.1f} processors busy  ratio {:.2f} (median of 5), goal {}\n",
      with_what, with / unit, Median(busy[1]), Median(ratios), goal);
}

// The size of one exchange with one server: a pull and a push of 4,096 rows, and another pull when
// nothing has changed.
void Weigh(const ParameterJob& job) {
  double floats = 0;
  for (const bool bf16 : {false, true}) {
    const auto shard = job.Shard(1, false);
    ExchangePacker packer(job.network(), 1, bf16);
    ExchangePart part;
    part.partitions = {0};
    ExchangePart* const parts[] = {&part};
    models::ParameterView view;
    view.tables.resize(job.network().tables().size());
    view.tables[0].ids = job.ids(0);
    models::Gradient gradient;
    for (const models::DenseTensor& tensor : job.network().dense()) {
      gradient.dense.emplace_back(tensor.size(), 0.01F);
    }
    gradient.tables.resize(view.tables.size());
    gradient.tables[0].assign(job.ids(0).size() * kDimension, 0.01F);
    const BatchIdentity batch;
    size_t dense[2] = {}, bytes = 0;
    for (size_t& pulled : dense) {
      packer.Pack({.pull = &batch, .wanted = &view}, parts);
      part.reply.Clear();
      Status status =
          AnswerPull(part.request.pull(), kNoMapVersion, part.partitions, 0, *shard, &part.reply);
      bytes = part.request.ByteSizeLong() + part.reply.ByteSizeLong();
      pulled = part.reply.dense().size();
      if (status.ok()) {
        status = packer.Take(parts, &view);
      }
      SLUICE_CHECK(status.ok(), status.message());
    }
    const elastic::BatchPush push{batch, 0, &view, &gradient};
    packer.Pack({.pushes = {&push, 1}}, parts);
    bytes += part.request.ByteSizeLong();
    floats = bf16 ? floats : static_cast<double>(bytes);
    fmt::print(
        "one exchange, {}  {:6.0f} kB  ratio {:.2f}; dense values {} bytes, again when "
        "nothing has changed: {}\n",
        bf16 ? "bf16   " : "float32", static_cast<double>(bytes) / 1e3,
        static_cast<double>(bytes) / floats, dense[0], dense[1]);
  }
}

// The 99th percentile of a push, without and with checkpoints being written back to back.
void PushesBesideCheckpoints(const ParameterJob& job) {
  namespace fs = std::filesystem;
  const fs::path path = fs::temp_directory_path() / fmt::format("sluice-bench-{}", getpid());
  std::map<ServerId, std::unique_ptr<ParameterShard>> shards;
  std::map<ServerId, std::unique_ptr<ParameterServer>> doors;
  ParameterFleet* keeper = nullptr;
  std::atomic<int> written = 0;
  std::atomic<bool> over = false;  // the last checkpoint may be interrupted
  ParameterFleet::Options options;
  options.servers = 2;
  options.partitions = kPartitions;
  options.key = kToken;
  options.silence_seconds = 1e6;
  options.checkpoints = CheckpointDirectory::Open(path.string(), 1).value();
  options.model = DescribeModel(job.plan().model(), job.network());
  ParameterFleet::Hooks hooks;
  hooks.start = [&](ServerId id) {
    shards[id] = job.Shard(kPartitions, true);
    doors[id] = ParameterServer::Start({kOneMachine, kToken, id, nullptr}, *shards[id]).value();
    (void)keeper->OnRegistered(id, doors[id]->address());
    return Status();
  };
  hooks.stop = [](ServerId) {};
  hooks.publish = [](const PartitionMap&) {};
  hooks.on_event = [&](const std::string& kind, const std::string& detail) {
    SLUICE_CHECK(over || kind != "checkpoint_failed", detail);
    written += kind == "checkpoint_written" ? 1 : 0;
  };
  hooks.fail = [](const Status& cause) { SLUICE_CHECK(false, cause.ToString()); };
  ParameterFleet fleet(options, std::move(hooks));
  keeper = &fleet;
  fleet.Start();
  while (fleet.map().version == kNoMapVersion) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const auto link =
      ConnectParameters(fleet.map(), [&](MapVersion) { return Result<PartitionMap>(fleet.map()); },
                        kToken, job.network(), false, {});
  constexpr int kRounds = 5;
  std::vector<double> percentiles[2];
  std::vector<double> ratios;
  int64_t batch = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (const bool beside : {false, true}) {
      std::vector<double> seconds;
      for (int i = 0; i < 3 * kBatches; ++i) {
        if (beside && i % (kBatches / 2) == 0) {
          fleet.RequestCheckpoint();
        }
        const double took = Seconds([&] { job.Exchange(*link, job.ids(i), 0, batch++); });
        if (i >= kBatches) {
          seconds.push_back(took);
        }
      }
      percentiles[beside ? 1 : 0].push_back(Quantile(seconds, 0.99));
    }
    ratios.push_back(percentiles[1].back() / percentiles[0].back());
  }
  over = true;
  fleet.Stop();
  doors.clear();
  fs::remove_all(path);
  fmt::print(
      "p99 of an exchange      {:6.1f} ms; beside {} checkpoints {:.1f} ms, ratio {:.2f} (medians "
      "of "
      "{}), goal 2.0\n",
      Median(percentiles[0]) * 1e3, written.load(), Median(percentiles[1]) * 1e3, Median(ratios),
      kRounds);
}

void Encrypted(const ParameterJob& job) {
  const JobKey key = MakeJobKey(kToken).value();
  for (const bool bf16 : {false, true}) {
    Compare(bf16 ? "1 server, 1 worker, bf16" : "1 server, 1 worker, float32", "with TLS", "0.80",
            1e6, [&](bool tls) {
              return ThroughStreams(job, 1, false, 1, bf16, tls ? key : kToken, kEveryAddress);
            });
  }
}

void Replicated(const ParameterJob& job) {
  const char* const replica = "with a replica";
  Compare("2 servers, 2 workers that only exchange", replica, "0.70", 1e6,
          [&](bool replicas) { return ThroughStreams(job, 2, replicas, 2); });
  Compare("2 servers, 2 workers that train, 512 rows a batch", replica, "0.70", 1e6, TrainedRows);
}

void OnOneCoreInProcess(const ParameterJob& job) {
  std::jthread([&] {
    OnOneCore();
    InProcess(job);
  }).join();
}

void Run(const ParameterJob& job) {
  OnOneCoreInProcess(job);
  const double one = ThroughStreams(job, 1, false, 1);
  fmt::print("1 server, shared memory {:6.2f} M rows/s  goal 1.5\n", one / 1e6);
  const double loopback = ThroughStreams(job, 1, false, 1, false, kToken, kEveryAddress);
  fmt::print("  TCP                   {:6.2f} M rows/s  ratio {:.2f}\n", loopback / 1e6,
             loopback / one);
  const double narrow = ThroughStreams(job, 1, false, 1, true);
  fmt::print("  bf16 messages         {:6.2f} M rows/s  ratio {:.2f}\n", narrow / 1e6,
             narrow / one);
  Weigh(job);
  Replicated(job);
  Encrypted(job);
  PushesBesideCheckpoints(job);
}

}  // namespace
}  // namespace sluice::elastic

int main(int argc, char** argv) {
  using sluice::elastic::ParameterJob;
  const std::map<std::string_view, void (*)(const ParameterJob&)> parts = {
      {"in-process", sluice::elastic::OnOneCoreInProcess},
      {"replica", sluice::elastic::Replicated},
      {"tls", sluice::elastic::Encrypted},
      {"checkpoints", sluice::elastic::PushesBesideCheckpoints}};
  const auto part = argc == 2 ? parts.find(argv[1]) : parts.end();
  if (argc > 2 || (argc == 2 && part == parts.end())) {
    fmt::print(stderr, "usage: parameter_bench [in-process | replica | tls | checkpoints]\n");
    return 1;
  }
  (argc == 2 ? part->second : sluice::elastic::Run)(ParameterJob());
  return 0;
}
