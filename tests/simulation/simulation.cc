#include "tests/simulation/simulation.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "elastic/queue/shard_order.h"

namespace sluice::elastic::simulation {
namespace {

constexpr double kLongestSeconds = 900;
// The longer, the more events a dying master's journal has not recorded.
constexpr double kRarePumpSeconds = 0.4;
constexpr int64_t kMaxBatches = 8;  // of a shard
constexpr int64_t kBatchRows = 10;

}  // namespace

struct Simulation::Plan {
  std::vector<int64_t> batches, last_rows;  // by shard
  int64_t total_batches = 0, total_rows = 0;
};

void Outcome::Add(const Outcome& other) {
  events += other.events;
  kills += other.kills;
  pauses += other.pauses;
  cuts += other.cuts;
  takeovers += other.takeovers;
  torn += other.torn;
  shared += other.shared;
  skipped += other.skipped;
  outages += other.outages;
  full_disks += other.full_disks;
  checkpoints += other.checkpoints;
  failed_checkpoints += other.failed_checkpoints;
  resumed += other.resumed;
  lost_servers += other.lost_servers;
  kept += other.kept;
  early_stops += other.early_stops;
  slow_writes += other.slow_writes;
  slow_calls += other.slow_calls;
  refused_starts += other.refused_starts;
  seconds += other.seconds;
}

Simulation::Simulation(uint64_t seed, const Options& options)
    : world_(seed), run_(options), plan_(std::make_unique<Plan>()), disk_(world_) {}

Simulation::~Simulation() = default;

void Simulation::Draw() {
  options_.queue.shards = 1 + world_.Below(8);
  options_.queue.epochs = static_cast<uint32_t>(1 + world_.Below(3));
  options_.queue.seed = static_cast<uint64_t>(world_.Below(1000));
  options_.queue.lanes = world_.Chance(0.3) ? (world_.Chance(0.5) ? 2 : 4) : 0;
  options_.queue.journal = true;
  options_.queue.lease_seconds = world_.Chance(0.5) ? 20 : 2;
  options_.silence_seconds = 3;
  options_.job_name = "job";
  options_.workers = static_cast<uint32_t>(1 + world_.Below(5));
  options_.task = models::Task::kRegression;
  options_.evaluation_shards = world_.Chance(0.3) ? 1 + world_.Below(80) : 0;
  options_.skip_poison = world_.Chance(0.5);
  if (options_.queue.lanes == 0 && world_.Chance(0.1)) {
    poisoned_ = ShardId(world_.Below(options_.queue.shards));
  }
  constexpr double kDrops[] = {0, 0.01, 0.1};
  weather_.drop = kDrops[world_.Below(3)];
  weather_.duplicate = kDrops[world_.Below(3)] / 2;
  weather_.delay = world_.Chance(0.5) ? 0.001 : 0.05;
  for (ShardId shard; shard < ShardId(options_.queue.shards); ++shard) {
    first_place_.push_back(plan_->total_batches);
    plan_->batches.push_back(1 + world_.Below(kMaxBatches));
    plan_->last_rows.push_back(1 + world_.Below(kBatchRows));
    plan_->total_batches += plan_->batches.back();
    plan_->total_rows += RowsOf(shard);
  }
  servers_ = std::make_unique<ModelServers>(static_cast<size_t>(1 + world_.Below(3)),
                                            static_cast<size_t>(plan_->total_batches),
                                            options_.queue.lanes > 0, run_.early_stopping);
}

void Simulation::DrawEarlyStopping() {
  options_.queue.epochs = static_cast<uint32_t>(2 + world_.Below(6));
  options_.evaluation_shards = 1 + world_.Below(80);
  options_.patience = static_cast<uint32_t>(1 + world_.Below(4));
  options_.metric = "rmse";
  pump_seconds_ = world_.Chance(0.5) ? kRarePumpSeconds : pump_seconds_;
}

int64_t Simulation::BatchesOf(ShardId shard) const {
  return plan_->batches[shard.index()];
}

int64_t Simulation::RowsBefore(ShardId shard, BatchIndex end) const {
  const int64_t batches = end - BatchIndex::First();
  return batches < BatchesOf(shard) ? batches * kBatchRows
                                    : (batches - 1) * kBatchRows + plan_->last_rows[shard.index()];
}

Status Simulation::Push(size_t server, const BatchIdentity& batch, bool end) {
  std::optional<size_t> place;
  if (!end) {
    place = static_cast<size_t>(first_place_[batch.shard.index()]) + batch.batch.index();
  }
  Status status = servers_->Push(server, batch, place);
  if (!servers_->broken().empty()) {
    Break(servers_->broken());
  }
  return status;
}

void Simulation::Break(const std::string& what) {
  if (outcome_.broken.empty()) {
    outcome_.broken = what;
  }
  finished_ = true;
}

float Simulation::Judge(const std::vector<int64_t>& versions) const {
  if (!run_.early_stopping) {
    return 2;  // evaluations never change, so the first epoch is the best
  }
  uint64_t hash = options_.queue.seed;
  for (int64_t version : versions) {
    hash = MixSeeds(hash, static_cast<uint64_t>(version), 0);
  }
  return 1 + static_cast<float>(hash >> 44) / static_cast<float>(1 << 20);
}

Simulation::End Simulation::ExpectedEnd() const {
  const uint32_t epochs = options_.queue.epochs;
  if (options_.patience == 0) {
    return {epochs, epochs};
  }
  End end;
  float best = 0;
  for (end.epochs = 1; end.epochs <= epochs; ++end.epochs) {
    const float value = Judge(std::vector<int64_t>(servers_->size(), After(end.epochs).version));
    if (end.best == 0 || value < best) {
      best = value;
      end.best = end.epochs;
    }
    if (end.epochs - end.best >= options_.patience) {
      return end;
    }
  }
  end.epochs = epochs;
  return end;
}

Simulation::Moment Simulation::After(uint32_t epochs) const {
  Moment moment;
  std::vector<double>& weights = moment.weights;
  weights.resize(static_cast<size_t>(plan_->total_batches), 0);
  const QueueOptions& queue = options_.queue;
  const int64_t lanes = queue.lanes > 0 ? queue.lanes : 1;
  for (Epoch epoch = Epoch::First(); epoch <= Epoch(epochs); ++epoch) {
    const ShardOrder order(queue.shards, queue.seed, epoch, queue.shuffle);
    for (int64_t begin = 0; begin < queue.shards; begin += lanes) {
      for (int64_t step = 0; step < kMaxBatches; ++step) {
        // A step of a round is the mean over the lanes that still have a batch.
        std::vector<size_t> places;
        for (int64_t at = begin; at < std::min(begin + lanes, queue.shards); ++at) {
          const ShardId shard = order.At(ShardPosition(at));
          if (step < BatchesOf(shard) && shard != poisoned_) {
            places.push_back(static_cast<size_t>(first_place_[shard.index()] + step));
          }
        }
        for (size_t place : places) {
          weights[place] -= 1.0 / static_cast<double>(places.size());
        }
        moment.version += places.empty() ? 0 : 1;
      }
    }
  }
  return moment;
}

void Simulation::CheckWeights(uint32_t epochs) {
  const std::vector<double> expected = After(epochs).weights;
  std::vector<std::string> digests;
  for (size_t s = 0; s < servers_->size(); ++s) {
    const std::vector<float> weights = servers_->Weights(s);
    for (size_t i = 0; i < weights.size(); ++i) {
      if (std::abs(weights[i] - expected[i]) > 1e-4) {
        Break(fmt::format("{}: batch {} was applied {} times on server {}, not {}",
                          options_.patience > 0 ? "I7" : "I2", i, -weights[i], s, -expected[i]));
      }
    }
    digests.push_back(DigestOf(servers_->Export(s)));
  }
  if (options_.patience > 0 && DigestOf(digests) != master_->best_digest()) {
    Break("I7: the weights are not those that were kept");
  }
}

void Simulation::CheckEnd() {
  const Status& result = master_->result();
  const bool nothing_else = options_.queue.shards == 1;
  if (poisoned_.has_value() && (!options_.skip_poison || nothing_else)) {
    if (result.ok() ||
        result.message().find(fmt::format("shard {}", *poisoned_)) == std::string::npos) {
      Break("I5: a poisoned shard did not end the job by its name: " + result.ToString());
    }
    return;
  }
  if (!result.ok()) {
    Break("I5: the job failed: " + result.ToString());
    return;
  }
  const End end = ExpectedEnd();
  outcome_.early_stops += end.epochs < options_.queue.epochs ? 1 : 0;
  const int64_t skipped = poisoned_.has_value() ? RowsOf(*poisoned_) : 0;
  const TrainOutcome outcome = master_->Outcome();
  for (int64_t rows : master_->queue().rows_per_epoch()) {
    if (rows != plan_->total_rows - skipped) {
      Break(fmt::format("I1: {} rows in an epoch, {} in the snapshot", rows, plan_->total_rows));
    }
  }
  if (outcome.rows_trained != int64_t{end.epochs} * (plan_->total_rows - skipped) ||
      outcome.epochs != end.epochs) {
    Break(fmt::format("I1: {} rows trained in {} epochs, not {}", outcome.rows_trained,
                      outcome.epochs, end.epochs));
  }
  if (outcome.validation_rows != options_.evaluation_shards) {
    Break(fmt::format("I5: {} rows evaluated of {}", outcome.validation_rows,
                      options_.evaluation_shards));
  }
  CheckWeights(end.best);
}

Outcome Simulation::Run(std::function<void(const std::string&)> listener) {
  world_.listener = std::move(listener);
  Draw();
  if (run_.early_stopping) {
    DrawEarlyStopping();
    ScheduleLostServers();
  }
  ScheduleFaults();
  if (run_.faults == Faults::kOutages) {
    ScheduleOutages();
  }
  if (run_.delays) {
    ScheduleDelays();
  }
  StartMaster();
  std::function<void()> pump = [this, &pump] {
    if (master_ != nullptr) {
      master_->Tick(MasterNow());
      Pump();
    }
    world_.In(pump_seconds_, pump);
  };
  pump();
  while (!finished_ && world_.Step()) {
    if (master_ != nullptr && master_->finished()) {
      CheckEnd();
      finished_ = true;
    } else if (world_.now() > kLongestSeconds) {
      Break("I5: the job does not end");
    }
  }
  outcome_.events = world_.events();
  outcome_.seconds = world_.now();
  return outcome_;
}

}  // namespace sluice::elastic::simulation
