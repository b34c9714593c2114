// How fast parameters are pulled and pushed: rows of 16 floats with Adagrad, batches of 4,096 rows,
// beside what a plain loop over the same bytes takes; then through gRPC on loopback, with and
// without replicas. One run, one process.
#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "elastic/direct_links.h"
#include "elastic/grpc_links.h"
#include "elastic/parameter_control.h"
#include "elastic/parameter_service.h"
#include "planner/plan.pb.h"
#include "tests/elastic/small_job.h"

namespace sluice::elastic {
namespace {

constexpr int64_t kTableRows = 1'000'000;
constexpr size_t kBatchRows = 4'096;
constexpr uint32_t kDimension = 16;
constexpr int kBatches = 400;
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

void OnOneCore() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof(one), &one);
}

class Job {
 public:
  Job() : plan_(SmallPlan(1, 64)) {
    models::Feature* category = plan_.mutable_model()->mutable_features()->mutable_features(2);
    category->set_dimension(kDimension);
    category->mutable_categorizer()->set_buckets(kTableRows * 8);
    network_ = models::Network::Make(plan_.model()).value();
    std::mt19937_64 random(3);
    for (int i = 0; i < kBatches; ++i) {
      std::vector<int64_t> ids(kBatchRows);
      for (int64_t& id : ids) {
        id = static_cast<int64_t>(random() % kTableRows);
      }
      std::sort(ids.begin(), ids.end());
      ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
      for (int64_t id = 0; ids.size() < kBatchRows; ++id) {
        if (!std::binary_search(ids.begin(), ids.end(), id)) {
          ids.insert(std::lower_bound(ids.begin(), ids.end(), id), id);
        }
      }
      std::shuffle(ids.begin(), ids.end(), random);
      batches_.push_back(std::move(ids));
    }
  }

  std::unique_ptr<ParameterShard> Shard(uint32_t partitions, bool empty) const {
    return ParameterShard::Make(plan_.model(), *network_, {partitions, false, empty}, nullptr)
        .value();
  }
  // One exchange of a batch: pull, then push.
  void Exchange(ParameterLink& link, const std::vector<int64_t>& ids, int64_t shard,
                int64_t batch) const {
    models::ParameterView view;
    view.tables.resize(network_->tables().size());
    view.tables[0].ids = ids;
    models::Gradient gradient;
    for (const models::DenseTensor& tensor : network_->dense()) {
      gradient.dense.emplace_back(tensor.size(), 0.01F);
    }
    gradient.tables.resize(view.tables.size());
    gradient.tables[0].assign(ids.size() * kDimension, 0.01F);
    BatchIdentity identity;
    identity.shard = shard;
    identity.batch = batch;
    Status status = link.Pull(identity, false, &view);
    if (status.ok()) {
      status = link.Push(identity, 1, view, gradient);
    }
    SLUICE_CHECK(status.ok(), status.message());
  }
  const models::Network& network() const { return *network_; }
  const plan::TrainPlan& plan() const { return plan_; }
  const std::vector<int64_t>& ids(int batch) const {
    return batches_[static_cast<size_t>(batch) % batches_.size()];
  }

 private:
  plan::TrainPlan plan_;
  std::unique_ptr<models::Network> network_;
  std::vector<std::vector<int64_t>> batches_;
};

// Reads and writes as many bytes in as many rows, one after another: a row's weights out, a
// gradient in, weights and slot read and written.
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

void InProcess(const Job& job) {
  const auto shard = job.Shard(1, false);
  DirectParameterLink link(*shard, job.network());
  for (int i = 0; i < kBatches; ++i) {
    job.Exchange(link, job.ids(i), 0, i);
  }
  const double warm = RowsPerSecond(kBatches, [&](int i) { job.Exchange(link, job.ids(i), 1, i); });
  std::vector<int64_t> fresh(kBatchRows);
  const double lazy = RowsPerSecond(kBatches, [&](int i) {
    std::iota(fresh.begin(), fresh.end(), kTableRows + static_cast<int64_t>(i) * kBatchRows);
    job.Exchange(link, fresh, 2, i);
  });
  const double limit = StreamingRows();
  fmt::print("in process, one core    {:6.2f} M rows/s  goal 5.0  ratio to streaming {:.2f}\n",
             warm / 1e6, warm / limit);
  fmt::print("lazy initialisation     {:6.2f} M rows/s  goal 5.0  ratio to streaming {:.2f}\n",
             lazy / 1e6, lazy / limit);
  fmt::print("streaming, same bytes   {:6.2f} M rows/s\n", limit / 1e6);
}

// Servers behind real doors, and workers that push to them at the same time.
double ThroughGrpc(const Job& job, uint32_t servers, bool replicas, int workers) {
  std::vector<std::unique_ptr<ParameterShard>> shards;
  std::vector<std::unique_ptr<ParameterServer>> doors;
  std::map<ServerId, std::string> addresses;
  for (ServerId id = 0; id < servers; ++id) {
    shards.push_back(job.Shard(kPartitions, true));
    doors.push_back(
        ParameterServer::Start({"127.0.0.1", kToken, id, nullptr}, *shards.back()).value());
    addresses.emplace(id, doors.back()->address());
  }
  const PartitionMap map = PlaceEvenly(addresses, kPartitions, replicas);
  const ParameterControl control(kToken, 1, {});
  for (const auto phase : {ParameterControl::Phase::kFreeze, ParameterControl::Phase::kCreate}) {
    for (const auto& [id, address] : addresses) {
      const Status status = control.Install(address, map, phase);
      SLUICE_CHECK(status.ok(), status.message());
    }
  }
  const auto connect = [&] {
    return ConnectParameters(map, [&map](uint64_t) { return Result<PartitionMap>(map); }, kToken,
                             job.network(), {});
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

void Run() {
  const Job job;
  std::jthread([&] {
    OnOneCore();
    InProcess(job);
  }).join();
  const double one = ThroughGrpc(job, 1, false, 1);
  fmt::print("gRPC, 1 server          {:6.2f} M rows/s  goal 1.5\n", one / 1e6);
  // In turns, so that what else the machine does falls on both.
  std::vector<double> ratios;
  double with = 0, without = 0;
  for (int round = 0; round < 5; ++round) {
    const double plain = ThroughGrpc(job, 2, false, 2);
    const double replicated = ThroughGrpc(job, 2, true, 2);
    ratios.push_back(replicated / plain);
    with += replicated / 5;
    without += plain / 5;
  }
  std::sort(ratios.begin(), ratios.end());
  fmt::print("gRPC, 2 servers         {:6.2f} M rows/s, 2 workers that only exchange\n",
             without / 1e6);
  fmt::print("  with a replica        {:6.2f} M rows/s  ratio {:.2f} (median of 5), goal 0.70\n",
             with / 1e6, ratios[2]);
}

}  // namespace
}  // namespace sluice::elastic

int main() {
  sluice::elastic::Run();
  return 0;
}
