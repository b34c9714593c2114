#include "elastic/parameter_shard.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <unordered_map>

#include "elastic/shard_order.h"
#include "models/model.pb.h"

namespace sluice::elastic {
namespace {

// One pass over the bits: an exponent of all ones is an infinity or a NaN.
bool AllFinite(std::span<const float> values) {
  constexpr uint32_t kExponent = 0x7F800000;
  uint32_t bad = 0;
  for (float value : values) {
    bad |= static_cast<uint32_t>((std::bit_cast<uint32_t>(value) & kExponent) == kExponent);
  }
  return bad == 0;
}

Status NotFinite(const std::string& name, const BatchIdentity& batch) {
  return InvalidArgument(
             fmt::format("the gradient of '{}' is not finite (epoch {}, shard {}, batch {}): the "
                         "training diverged",
                         name, batch.epoch, batch.shard, batch.batch))
      .SqlState("22003")
      .Hint("a smaller learning rate or batch size usually helps");
}

std::vector<uint32_t> Dimensions(const models::Network& network) {
  std::vector<uint32_t> dimensions;
  for (const models::EmbeddingTable& table : network.tables()) {
    dimensions.push_back(table.dimension);
  }
  return dimensions;
}

}  // namespace

std::pair<size_t, size_t> Placement::Slice(size_t size) const {
  return {size * index / count, size * (index + 1) / count};
}

uint32_t Placement::ServerOf(size_t table, int64_t id, uint32_t servers) {
  return servers == 1 ? 0
                      : static_cast<uint32_t>(MixSeeds(table, static_cast<uint64_t>(id)) % servers);
}

// A server's slice of a dense tensor: values, then the optimizer's slots.
struct ParameterShard::Tensor {
  std::string name;
  const models::Optimizer* optimizer = nullptr;
  size_t size = 0;
  std::vector<float> values;
};

ParameterShard::ParameterShard(const models::Network& network, const Options& options,
                               uint64_t seed)
    : options_(options), seed_(seed), descriptions_(network.tables()), step_(Dimensions(network)) {}

ParameterShard::~ParameterShard() = default;

Result<std::unique_ptr<ParameterShard>> ParameterShard::Make(const models::ModelSpec& spec,
                                                             const models::Network& network,
                                                             const Options& options,
                                                             const models::NetworkWeights* base) {
  if (base != nullptr) {
    RETURN_IF_ERROR(models::CheckShape(*base, network));
  }
  std::unique_ptr<ParameterShard> shard(new ParameterShard(network, options, spec.seed()));
  ASSIGN_OR_RETURN(shard->deep_optimizer_, models::Optimizer::Make(spec.deep_optimizer()));
  ASSIGN_OR_RETURN(shard->wide_optimizer_, models::Optimizer::Make(spec.wide_optimizer()));
  const MutexLock lock(shard->mutex_);
  std::vector<float> whole;
  for (size_t i = 0; i < network.dense().size(); ++i) {
    const models::DenseTensor& description = network.dense()[i];
    whole.resize(description.size());
    if (base != nullptr) {
      whole = base->dense[i];
    } else {
      models::InitializeDense(description, spec.seed(), whole);
    }
    const auto [begin, end] = options.placement.Slice(whole.size());
    Tensor tensor;
    tensor.name = description.name;
    tensor.size = end - begin;
    tensor.optimizer =
        description.wide ? shard->wide_optimizer_.get() : shard->deep_optimizer_.get();
    tensor.values.assign(tensor.size * (1 + tensor.optimizer->slot_count()), 0.0F);
    std::copy(whole.begin() + static_cast<std::ptrdiff_t>(begin),
              whole.begin() + static_cast<std::ptrdiff_t>(end), tensor.values.begin());
    const std::span<float> slots = std::span(tensor.values).subspan(tensor.size);
    tensor.optimizer->InitializeSlots(slots, tensor.size);
    if (base != nullptr) {
      tensor.optimizer->Adopt(tensor.values.data(), slots, tensor.size);
    }
    shard->tensors_.push_back(std::move(tensor));
  }
  for (size_t t = 0; t < network.tables().size(); ++t) {
    const models::EmbeddingTable& table = network.tables()[t];
    shard->slabs_.emplace_back(
        table, table.wide ? *shard->wide_optimizer_ : *shard->deep_optimizer_, spec.seed());
    if (base == nullptr) {
      continue;
    }
    for (size_t row = 0; row < base->tables[t].ids.size(); ++row) {
      const int64_t id = base->tables[t].ids[row];
      if (Placement::ServerOf(t, id, options.placement.count) == options.placement.index) {
        shard->slabs_.back().Write(std::span(&id, 1),
                                   base->tables[t].values.data() + row * table.dimension);
      }
    }
  }
  return shard;
}

Status ParameterShard::CheckIds(size_t table, std::span<const int64_t> ids) const {
  const models::EmbeddingTable& description = descriptions_[table];
  for (int64_t id : ids) {
    if (id < 0 || id >= description.rows) {
      return InvalidArgument(fmt::format("table '{}' has no row {}: it has {} rows",
                                         description.name, id, description.rows));
    }
  }
  return Status();
}

Status ParameterShard::CheckShape(const PushRequest& request) const NO_THREAD_SAFETY_ANALYSIS {
  // Sizes and names never change after Make, so no lock is needed to read them.
  if (request.dense.size() != tensors_.size() || request.tables.size() != descriptions_.size()) {
    return InvalidArgument(fmt::format(
        "a push has {} tensors and {} tables; the model has {} and {}", request.dense.size(),
        request.tables.size(), tensors_.size(), descriptions_.size()));
  }
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (request.dense[i].size() != tensors_[i].size) {
      return InvalidArgument(fmt::format("the gradient of '{}' has {} elements; expected {}",
                                         tensors_[i].name, request.dense[i].size(),
                                         tensors_[i].size));
    }
    if (!AllFinite(request.dense[i])) {
      return NotFinite(tensors_[i].name, request.batch);
    }
  }
  for (size_t t = 0; t < descriptions_.size(); ++t) {
    const PushRequest::Rows& rows = request.tables[t];
    if (rows.values.size() != rows.ids.size() * descriptions_[t].dimension) {
      return InvalidArgument(fmt::format("the gradient of table '{}' has {} numbers for {} rows",
                                         descriptions_[t].name, rows.values.size(),
                                         rows.ids.size()));
    }
    RETURN_IF_ERROR(CheckIds(t, rows.ids));
    if (!AllFinite(rows.values)) {
      return NotFinite(descriptions_[t].name, request.batch);
    }
  }
  return Status();
}

void ParameterShard::Apply(const std::vector<std::span<const float>>& dense,
                           const std::vector<PushRequest::Rows>& tables, float rate_scale) {
  ++version_;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    Tensor& tensor = tensors_[i];
    tensor.optimizer->Update(tensor.values.data(), tensor.values.data() + tensor.size,
                             dense[i].data(), tensor.size, version_, rate_scale);
  }
  for (size_t t = 0; t < slabs_.size(); ++t) {
    slabs_[t].Update(tables[t].ids, tables[t].values.data(), rate_scale);
  }
}

Status ParameterShard::Push(const PushRequest& request) {
  if (!request.end) {
    RETURN_IF_ERROR(CheckShape(request));
  }
  const MutexLock lock(mutex_);
  if (options_.synchronous) {
    return PushLane(request);
  }
  const BatchIdentity& batch = request.batch;
  switch (window_.Check(batch.epoch, batch.shard, batch.batch, batch.attempt, batch.range)) {
    case BatchWindow::Verdict::kApplied:
      return Status();
    case BatchWindow::Verdict::kFenced:
      return Status(Code::kAborted,
                    fmt::format("shard {} belongs to another worker now", batch.shard));
    case BatchWindow::Verdict::kGap:
      return FailedPrecondition(fmt::format("batch {} of shard {} comes before batch {}",
                                            batch.batch, batch.shard,
                                            window_.AppliedBatches(batch.epoch, batch.shard)));
    case BatchWindow::Verdict::kNew:
      break;
  }
  const int64_t staleness = std::max<int64_t>(1, version_ - request.version);
  Apply(request.dense, request.tables, 1.0F / static_cast<float>(staleness));
  window_.Applied(batch.epoch, batch.shard, batch.batch);
  return Status();
}

Status ParameterShard::PushLane(const PushRequest& request) {
  const BatchIdentity& batch = request.batch;
  if (batch.lane >= batch.lanes) {
    return InvalidArgument(fmt::format("lane {} of {} lanes", batch.lane, batch.lanes));
  }
  const auto place = std::tie(batch.epoch, batch.round);
  const auto open = std::tie(position_.epoch, position_.round);
  if (place < open || (place == open && (position_.over || batch.batch < position_.step))) {
    return Status();  // closed with this contribution in it
  }
  if (place > open) {
    if (!position_.over || batch.batch != 0) {
      return Internal(fmt::format("round {} of epoch {} begins before round {} has ended",
                                  batch.round, batch.epoch, position_.round));
    }
    position_ = {batch.epoch, batch.round, 0, false};
    step_.StartRound(batch.lanes);
  }
  // A lane that ends says so when it has pushed its last gradient: the step of that one may be
  // open.
  const int64_t latest = position_.step + (request.end ? 1 : 0);
  if (batch.lanes != step_.lanes() || batch.batch > latest) {
    return Internal(fmt::format("step {} of lane {} of {} is ahead of the open step {}",
                                batch.batch, batch.lane, batch.lanes, position_.step));
  }
  if (request.end) {
    step_.End(batch.lane);
  } else if (!step_.Has(batch.lane)) {
    LaneGradient gradient;
    gradient.weight = request.weight;
    for (const std::span<const float>& tensor : request.dense) {
      gradient.dense.emplace_back(tensor.begin(), tensor.end());
    }
    for (const PushRequest::Rows& rows : request.tables) {
      gradient.tables.push_back(
          {{rows.ids.begin(), rows.ids.end()}, {rows.values.begin(), rows.values.end()}});
    }
    step_.Add(batch.lane, std::move(gradient));
  }
  while (!position_.over && step_.Complete()) {
    CloseStep();
  }
  return Status();
}

void ParameterShard::CloseStep() {
  if (step_.RoundOver()) {
    position_.over = true;
  } else {
    const LaneGradient sum = step_.Close();
    dense_before_.resize(tensors_.size());
    rows_before_.resize(slabs_.size());
    std::vector<std::span<const float>> dense;
    std::vector<PushRequest::Rows> tables;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      dense_before_[i].assign(
          tensors_[i].values.begin(),
          tensors_[i].values.begin() + static_cast<std::ptrdiff_t>(tensors_[i].size));
      dense.emplace_back(sum.dense[i]);
    }
    for (size_t t = 0; t < slabs_.size(); ++t) {
      rows_before_[t].ids = sum.tables[t].ids;
      rows_before_[t].values.resize(sum.tables[t].values.size());
      slabs_[t].Read(sum.tables[t].ids, rows_before_[t].values.data());
      tables.push_back({sum.tables[t].ids, sum.tables[t].values});
    }
    Apply(dense, tables, 1.0F);
    ++position_.step;
  }
  step_closed_.notify_all();
}

ParameterShard::Ready ParameterShard::StepReady(const BatchIdentity& batch) const {
  const auto place = std::tie(batch.epoch, batch.round);
  const auto open = std::tie(position_.epoch, position_.round);
  if (place > open) {
    return position_.over && batch.batch == 0 ? Ready::kNow : Ready::kNotYet;
  }
  if (place == open && batch.batch + 1 == position_.step) {
    return Ready::kBefore;
  }
  // Values for a step that has closed long ago are asked for by a worker that is about to find out
  // that its push is a repetition: any values do.
  return place < open || batch.batch <= position_.step ? Ready::kNow : Ready::kNotYet;
}

void ParameterShard::ReadBefore(const PullRequest& request, const PullTarget& target) const {
  for (size_t i = 0; i < target.dense.size(); ++i) {
    std::copy(dense_before_[i].begin(), dense_before_[i].end(), target.dense[i]);
  }
  for (size_t t = 0; t < slabs_.size(); ++t) {
    const size_t dimension = descriptions_[t].dimension;
    slabs_[t].Read(request.tables[t], target.tables[t]);
    std::unordered_map<int64_t, const float*> before;
    for (size_t i = 0; i < rows_before_[t].ids.size(); ++i) {
      before.emplace(rows_before_[t].ids[i], rows_before_[t].values.data() + i * dimension);
    }
    for (size_t i = 0; i < request.tables[t].size(); ++i) {
      const auto found = before.find(request.tables[t][i]);
      if (found != before.end()) {
        std::copy_n(found->second, dimension, target.tables[t] + i * dimension);
      }
    }
  }
}

Result<int64_t> ParameterShard::Pull(const PullRequest& request, const PullTarget& target,
                                     double wait_seconds) {
  if (request.tables.size() != descriptions_.size()) {
    return InvalidArgument(fmt::format("a pull names {} tables; the model has {}",
                                       request.tables.size(), descriptions_.size()));
  }
  for (size_t t = 0; t < descriptions_.size(); ++t) {
    RETURN_IF_ERROR(CheckIds(t, request.tables[t]));
  }
  MutexLock lock(mutex_);
  if (options_.synchronous && !request.evaluation) {
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(wait_seconds);
    while (!closed_ && StepReady(request.batch) == Ready::kNotYet) {
      if (step_closed_.wait_until(lock.native(), until) == std::cv_status::timeout) {
        return Status(Code::kDeadlineExceeded,
                      fmt::format("step {} of round {} is not open yet", request.batch.batch,
                                  request.batch.round));
      }
    }
    if (closed_) {
      return Cancelled("the parameter server is stopping");
    }
    if (StepReady(request.batch) == Ready::kBefore) {
      ReadBefore(request, target);
      return version_ - 1;
    }
  }
  for (size_t i = 0; i < target.dense.size(); ++i) {
    std::copy_n(tensors_[i].values.begin(), tensors_[i].size, target.dense[i]);
  }
  for (size_t t = 0; t < slabs_.size(); ++t) {
    slabs_[t].Read(request.tables[t], target.tables[t]);
  }
  return version_;
}

std::vector<const float*> ParameterShard::LiveDense() const {
  const MutexLock lock(mutex_);
  std::vector<const float*> dense;
  for (const Tensor& tensor : tensors_) {
    dense.push_back(tensor.values.data());
  }
  return dense;
}

int64_t ParameterShard::AppliedBatches(uint32_t epoch, int64_t shard) const {
  const MutexLock lock(mutex_);
  return window_.AppliedBatches(epoch, shard);
}

int64_t ParameterShard::version() const {
  const MutexLock lock(mutex_);
  return version_;
}

int64_t ParameterShard::rows() const {
  const MutexLock lock(mutex_);
  int64_t rows = 0;
  for (const EmbeddingSlab& slab : slabs_) {
    rows += static_cast<int64_t>(slab.rows());
  }
  return rows;
}

models::NetworkWeights ParameterShard::ExportLive() const {
  models::NetworkWeights weights;
  for (const Tensor& tensor : tensors_) {
    weights.dense.emplace_back(tensor.values.begin(),
                               tensor.values.begin() + static_cast<std::ptrdiff_t>(tensor.size));
  }
  for (const EmbeddingSlab& slab : slabs_) {
    weights.tables.push_back(slab.Export());
  }
  return weights;
}

void ParameterShard::KeepBest() {
  const MutexLock lock(mutex_);
  best_ = std::make_unique<models::NetworkWeights>(ExportLive());
}

models::NetworkWeights ParameterShard::Export() const {
  const MutexLock lock(mutex_);
  return best_ != nullptr ? *best_ : ExportLive();
}

void ParameterShard::Close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  step_closed_.notify_all();
}

}  // namespace sluice::elastic
