#include "tests/simulation/simulation.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/value.h"
#include "elastic/shard_order.h"
#include "tests/simulation/linear_model.h"

namespace sluice::elastic::simulation {
namespace {

constexpr double kLongestSeconds = 900;
constexpr double kPumpSeconds = 0.05;
constexpr int64_t kMostBatches = 8;  // of a shard
constexpr int64_t kBatchRows = 10;
constexpr uint32_t kPartition[] = {0};
constexpr int64_t kNeverStale[] = {int64_t{1} << 60};  // every gradient counts in full

}  // namespace

struct Simulation::Plan {
  std::vector<int64_t> batches, last_rows;  // by shard
  int64_t total_batches = 0, total_rows = 0;
  const LinearModel* model = nullptr;
};

Simulation::Simulation(uint64_t seed) : world_(seed), plan_(std::make_unique<Plan>()) {}

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
    poisoned_ = world_.Below(options_.queue.shards);
  }
  constexpr double kDrops[] = {0, 0.01, 0.1};
  weather_.drop = kDrops[world_.Below(3)];
  weather_.duplicate = kDrops[world_.Below(3)] / 2;
  weather_.delay = world_.Chance(0.5) ? 0.001 : 0.05;
  for (int64_t shard = 0; shard < options_.queue.shards; ++shard) {
    first_place_.push_back(plan_->total_batches);
    plan_->batches.push_back(1 + world_.Below(kMostBatches));
    plan_->last_rows.push_back(1 + world_.Below(kBatchRows));
    plan_->total_batches += plan_->batches.back();
    plan_->total_rows += RowsOf(shard);
  }
}

int64_t Simulation::BatchesOf(int64_t shard) const {
  return plan_->batches[static_cast<size_t>(shard)];
}

int64_t Simulation::RowsBefore(int64_t shard, int64_t batch) const {
  return batch < BatchesOf(shard)
             ? batch * kBatchRows
             : (batch - 1) * kBatchRows + plan_->last_rows[static_cast<size_t>(shard)];
}

void Simulation::MakeServers() {
  servers_.resize(static_cast<size_t>(1 + world_.Below(3)));
  plan_->model = &LinearModelOf(static_cast<size_t>(plan_->total_batches));
  ParameterShard::Options options;
  options.synchronous = options_.queue.lanes > 0;
  for (Server& server : servers_) {
    // Each has a model of its own, and gets every gradient: all that counts is who gets what when.
    Result<std::unique_ptr<ParameterShard>> shard =
        ParameterShard::Make(plan_->model->spec, *plan_->model->network, options, nullptr);
    SLUICE_CHECK(shard.ok(), "the simulated servers can be made");
    server.shard = std::move(*shard);
  }
}

Status Simulation::Push(size_t server, const BatchIdentity& batch, bool end) {
  Server& at = servers_[server];
  std::vector<std::vector<float>> dense;
  for (const models::DenseTensor& tensor : plan_->model->network->dense()) {
    dense.emplace_back(tensor.size(), 0.0F);
  }
  PushRequest request;
  request.partitions = kPartition;
  request.versions = kNeverStale;
  request.batch = batch;
  request.weight = 1;
  request.end = end;
  request.tables.resize(plan_->model->network->tables().size());
  if (!end) {
    const int64_t place = first_place_[static_cast<size_t>(batch.shard)] + batch.batch;
    dense[plan_->model->tensor][static_cast<size_t>(place)] = 1;
  }
  for (const std::vector<float>& tensor : dense) {
    request.dense.emplace_back(tensor);
  }
  const int64_t before = at.shard->version();
  Status status = at.shard->Push(request);
  if (batch.lanes == 0) {
    uint32_t& newest = at.attempts[{batch.epoch, batch.shard, batch.range}];
    if (at.shard->version() > before && batch.attempt < newest) {
      Break(fmt::format("I3: server {} applied batch {} of shard {} from attempt {} after {}",
                        server, batch.batch, batch.shard, batch.attempt, newest));
    }
    newest = std::max(newest, batch.attempt);
  }
  return status;
}

Status Simulation::Ready(size_t server, const BatchIdentity& batch) {
  PullRequest request;
  request.partitions = kPartition;
  request.batch = batch;
  request.tables.resize(plan_->model->network->tables().size());
  int64_t version = 0;
  PullTarget target;
  target.versions = std::span(&version, 1);
  return servers_[server].shard->Pull(request, target, 0);
}

void Simulation::SawTask(const Task& task, Incarnation owner) {
  if (task.kind != Task::Kind::kTrain) {
    world_.Tell(fmt::format("worker {} evaluates {} shards as task {}", owner, task.shards.size(),
                            task.id));
    return;
  }
  world_.Tell(fmt::format("worker {} has task {}: epoch {} shard {} [{}, {}) attempt {}", owner,
                          task.id, task.epoch, task.shard, task.first_batch,
                          task.last_batch == Task::kToTheEnd ? -1 : task.last_batch, task.attempt));
  const QueueState& state = master_->queue().state();
  const auto lease = state.leases().find(task.id);
  const bool race =
      lease != state.leases().end() && state.ranges().at(lease->second.key).holders.size() > 1;
  outcome_.shared += race || task.range > 0 ? 1 : 0;
  if (!owned_.insert({task.epoch, task.shard, task.range, task.attempt}).second && !race) {
    Break(fmt::format("I3: shard {} from batch {} was handed out twice as attempt {}", task.shard,
                      task.range, task.attempt));
  }
}

TimePoint Simulation::MasterNow() const {
  return std::chrono::duration_cast<TimePoint>(
      std::chrono::duration<double>(world_.now() + master_clock_));
}

void Simulation::StartMaster() {
  ++term_;
  master_clock_ = world_.Uniform(0, 1e6);
  size_t whole = 0;
  const std::vector<std::string> entries = ReadFrames(journal_, &whole);
  journal_.resize(whole);
  if (entries.empty()) {
    master_ = std::make_unique<Master>(options_, MasterNow());
    master_->Start(MasterNow());
  } else {
    std::vector<std::string> alive;
    for (const auto& [name, worker] : workers_) {
      alive.push_back(name);
    }
    Result<std::unique_ptr<Master>> master =
        Master::TakeOver(options_, term_, entries, alive, MasterNow());
    if (!master.ok()) {
      Break("the journal cannot be replayed: " + master.status().ToString());
      return;
    }
    master_ = std::move(*master);
    ++outcome_.takeovers;
  }
  world_.Tell(fmt::format("master of term {} starts", term_));
  Pump();
}

void Simulation::CrashMaster() {
  if (master_ == nullptr) {
    return;
  }
  world_.Tell("the master dies");
  master_.reset();
  world_.In(world_.Uniform(0.2, 3), [this] { StartMaster(); });
}

void Simulation::Pump() {
  const std::string entry = master_->TakeJournal();
  const std::vector<Master::Action> actions = master_->TakeActions();
  for (const Master::Event& event : master_->TakeEvents()) {
    world_.Tell(fmt::format("{}: {}", event.kind, event.detail));
    outcome_.skipped += event.kind == "shard_skipped" ? 1 : 0;
  }
  if (!entry.empty()) {
    const size_t before = journal_.size();
    AppendFrame(entry, &journal_);
    if (std::exchange(tear_, false)) {
      ++outcome_.torn;
      const auto written = static_cast<int64_t>(journal_.size() - before);
      journal_.resize(before + static_cast<size_t>(world_.Below(written)));
      CrashMaster();
      return;
    }
  }
  for (const Master::Action& action : actions) {
    Act(action);
  }
}

void Simulation::Act(const Master::Action& action) {
  switch (action.kind) {
    case Master::Action::Kind::kStartWorker:
      StartWorker(action.name, action.incarnation);
      return;
    case Master::Action::Kind::kDrainWorker:  // it is gone at once: the harder way to leave
    case Master::Action::Kind::kStopWorker:
      world_.In(0.1, [this, name = action.name] {
        const auto found = workers_.find(name);
        if (found != workers_.end()) {
          found->second->Kill();
          OnWorkerGone(name, ExitClass::kPreempted);
        }
      });
      return;
    case Master::Action::Kind::kKeepWeights:
      for (Server& server : servers_) {
        SLUICE_CHECK(server.shard->KeepBest(0).ok(), "the map never changes");
      }
      master_->OnWeightsKept(MasterNow());
      return;
    case Master::Action::Kind::kCheckpoint:
    case Master::Action::Kind::kCommitCheckpoint:
      SLUICE_CHECK(false, "no checkpoints are asked for");
  }
}

void Simulation::StartWorker(const std::string& name, Incarnation incarnation) {
  const double slowness = world_.Chance(0.2) ? 10 : world_.Uniform(0.5, 1.5);
  auto worker = std::make_shared<ModelWorker>(*this, name, incarnation, slowness);
  workers_[name] = worker;
  world_.In(world_.Uniform(0.1, 1), [worker] {
    if (worker->alive()) {
      worker->Start();
    }
  });
}

void Simulation::OnWorkerGone(const std::string& name, ExitClass how) {
  workers_.erase(name);
  world_.In(world_.Uniform(0.01, 0.3), [this, name, how] {
    if (master_ != nullptr) {
      master_->OnExit(name, how, "exit", MasterNow());
    }
  });
}

ModelWorker* Simulation::RandomWorker() {
  if (workers_.empty()) {
    return nullptr;
  }
  auto worker = workers_.begin();
  std::advance(worker, world_.Below(static_cast<int64_t>(workers_.size())));
  return worker->second.get();
}

void Simulation::ScheduleFaults() {
  const int64_t faults = world_.Below(12);
  const double within = world_.Uniform(1, 8);
  for (int64_t i = 0; i < faults; ++i) {
    world_.At(world_.Uniform(0.2, within), [this] { Fault(); });
  }
}

void Simulation::Fault() {
  const int64_t what = world_.Below(6);
  if (what >= 4) {
    if (what == 4) {
      CrashMaster();
    } else {
      tear_ = true;
    }
    return;
  }
  ModelWorker* worker = RandomWorker();
  if (worker == nullptr) {
    return;
  }
  const std::string name = worker->name();
  if (what <= 1) {
    world_.Tell(fmt::format("{} is killed", name));
    ++outcome_.kills;
    worker->Kill();
    OnWorkerGone(name, ExitClass::kPreempted);
  } else if (what == 2) {
    world_.Tell(fmt::format("{} is stopped for a while", name));
    ++outcome_.pauses;
    worker->Pause(world_.now() + world_.Uniform(0.1, 8));
  } else {
    world_.Tell(fmt::format("{} is cut off", name));
    ++outcome_.cuts;
    worker->CutOff(world_.now() + world_.Uniform(0.5, 60));
  }
}

void Simulation::Break(const std::string& what) {
  if (outcome_.broken.empty()) {
    outcome_.broken = what;
  }
  finished_ = true;
}

std::vector<double> Simulation::ExpectedWeights() const {
  std::vector<double> weights(static_cast<size_t>(plan_->total_batches), 0);
  const QueueOptions& queue = options_.queue;
  const int64_t lanes = queue.lanes > 0 ? queue.lanes : 1;
  for (uint32_t epoch = 1; epoch <= queue.epochs; ++epoch) {
    const ShardOrder order(queue.shards, queue.seed, epoch, queue.shuffle);
    for (int64_t begin = 0; begin < queue.shards; begin += lanes) {
      for (int64_t step = 0; step < kMostBatches; ++step) {
        // A step of a round is the mean over the lanes that still have a batch.
        std::vector<size_t> places;
        for (int64_t at = begin; at < std::min(begin + lanes, queue.shards); ++at) {
          const int64_t shard = order.At(at);
          if (step < BatchesOf(shard) && shard != poisoned_) {
            places.push_back(static_cast<size_t>(first_place_[static_cast<size_t>(shard)] + step));
          }
        }
        for (size_t place : places) {
          weights[place] -= 1.0 / static_cast<double>(places.size());
        }
      }
    }
  }
  return weights;
}

void Simulation::CheckEnd() {
  const Status& result = master_->result();
  const bool nothing_else = options_.queue.shards == 1;
  if (poisoned_ >= 0 && (!options_.skip_poison || nothing_else)) {
    if (result.ok() ||
        result.message().find(fmt::format("shard {}", poisoned_)) == std::string::npos) {
      Break("I5: a poisoned shard did not end the job by its name: " + result.ToString());
    }
    return;
  }
  if (!result.ok()) {
    Break("I5: the job failed: " + result.ToString());
    return;
  }
  const int64_t epochs = options_.queue.epochs;
  const int64_t skipped = poisoned_ >= 0 ? RowsOf(poisoned_) : 0;
  const TrainOutcome outcome = master_->Outcome();
  for (int64_t rows : master_->queue().rows_per_epoch()) {
    if (rows != plan_->total_rows - skipped) {
      Break(fmt::format("I1: {} rows in an epoch, {} in the snapshot", rows, plan_->total_rows));
    }
  }
  if (outcome.rows_trained != epochs * (plan_->total_rows - skipped) ||
      outcome.epochs != options_.queue.epochs) {
    Break(fmt::format("I1: {} rows trained in {} epochs", outcome.rows_trained, outcome.epochs));
  }
  if (outcome.validation_rows != options_.evaluation_shards) {
    Break(fmt::format("I5: {} rows evaluated of {}", outcome.validation_rows,
                      options_.evaluation_shards));
  }
  const std::vector<double> expected = ExpectedWeights();
  for (size_t s = 0; s < servers_.size(); ++s) {
    const std::vector<float> weights =
        servers_[s].shard->ExportAll(*plan_->model->network).value().dense[plan_->model->tensor];
    for (size_t i = 0; i < weights.size(); ++i) {
      if (std::abs(weights[i] - expected[i]) > 1e-4) {
        Break(fmt::format("I2: batch {} was applied {} times on server {}, not {}", i, -weights[i],
                          s, -expected[i]));
      }
    }
  }
}

Outcome Simulation::Run(std::function<void(const std::string&)> listener) {
  world_.listener = std::move(listener);
  Draw();
  MakeServers();
  ScheduleFaults();
  StartMaster();
  std::function<void()> pump = [this, &pump] {
    if (master_ != nullptr) {
      master_->Tick(MasterNow());
      Pump();
    }
    world_.In(kPumpSeconds, pump);
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
