#include "elastic/parameters/partition.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "catalog/model_record.h"
#include "models/model.pb.h"
#include "models/networks/initialize.h"

namespace sluice::elastic {

namespace {

// Large enough that the next epochs still learn, small enough that they differ from the last ones.
constexpr float kRateCut = 0.3F;

}  // namespace

float RateFactor(uint32_t rate_cuts) {
  float factor = 1;
  for (uint32_t cut = 0; cut < rate_cuts && factor > 0; ++cut) {
    factor *= kRateCut;
  }
  return factor;
}

Result<ParameterRules> ParameterRules::Make(const models::ModelSpec& spec,
                                            const models::Network& network, uint32_t partitions,
                                            bool synchronous) {
  ParameterRules rules{PartitionLayout(network, partitions),
                       network.dense(),
                       network.tables(),
                       {},
                       spec.seed(),
                       synchronous,
                       nullptr,
                       nullptr,
                       nullptr,
                       nullptr,
                       {}};
  for (const models::EmbeddingTable& table : network.tables()) {
    rules.dimensions.push_back(table.dimension);
  }
  ASSIGN_OR_RETURN(rules.deep_optimizer, models::Optimizer::Make(spec.deep_optimizer()));
  ASSIGN_OR_RETURN(rules.wide_optimizer, models::Optimizer::Make(spec.wide_optimizer()));
  constexpr auto kBiases = models::Optimizer::Of::kBiases;
  ASSIGN_OR_RETURN(rules.deep_bias_optimizer,
                   models::Optimizer::Make(spec.deep_optimizer(), kBiases));
  ASSIGN_OR_RETURN(rules.wide_bias_optimizer,
                   models::Optimizer::Make(spec.wide_optimizer(), kBiases));
  rules.running_means.emplace(1.0F, models::MakeRunningMean(1));
  for (const models::DenseTensor& tensor : rules.tensors) {
    if (tensor.group == models::DenseTensor::Group::kStatistics) {
      rules.running_means.emplace(tensor.momentum, models::MakeRunningMean(tensor.momentum));
    }
  }
  return rules;
}

Partition::Partition(const ParameterRules& rules, uint32_t index)
    : rules_(rules), index_(index), step_(rules.dimensions) {
  for (const PartitionLayout::Chunk& chunk : chunks()) {
    const models::Optimizer& optimizer = rules.OptimizerOf(rules.tensors[chunk.tensor]);
    dense_.emplace_back(chunk.size() * (1 + optimizer.slot_count()), 0.0F);
  }
  for (const models::EmbeddingTable& table : rules.tables) {
    slabs_.emplace_back(table, rules.OptimizerOf(table), rules.seed, rules.layout.partitions());
  }
}

void Partition::Initialize(const models::NetworkWeights* base) {
  std::vector<float> whole;
  size_t held = rules_.tensors.size();  // the tensor in `whole`: chunks come tensor by tensor
  for (size_t c = 0; c < dense_.size(); ++c) {
    const PartitionLayout::Chunk& chunk = chunks()[c];
    const models::DenseTensor& tensor = rules_.tensors[chunk.tensor];
    if (base == nullptr && held != chunk.tensor) {
      whole.resize(tensor.size());
      models::InitializeDense(tensor, rules_.seed, whole);
      held = chunk.tensor;
    }
    const std::vector<float>& from = base != nullptr ? base->dense[chunk.tensor] : whole;
    std::copy_n(from.data() + chunk.begin, chunk.size(), dense_[c].data());
    const std::span<float> slots = std::span(dense_[c]).subspan(chunk.size());
    const models::Optimizer& optimizer = rules_.OptimizerOf(tensor);
    optimizer.InitializeSlots(slots, chunk.size());
    if (base != nullptr) {
      optimizer.Adopt(dense_[c].data(), slots, chunk.size());
    }
  }
  for (size_t t = 0; base != nullptr && t < slabs_.size(); ++t) {
    const models::NetworkWeights::Table& table = base->tables[t];
    for (size_t row = 0; row < table.ids.size(); ++row) {
      if (rules_.layout.PartitionOf(t, table.ids[row]) == index_) {
        slabs_[t].Write(std::span(&table.ids[row], 1),
                        table.values.data() + row * rules_.dimensions[t]);
      }
    }
  }
}

void Partition::Update(std::span<const std::span<const float>> dense,
                       std::span<const RowSpan> tables, float rate_scale) {
  ++version_;
  for (size_t c = 0; c < dense_.size(); ++c) {
    const PartitionLayout::Chunk& chunk = chunks()[c];
    rules_.OptimizerOf(rules_.tensors[chunk.tensor])
        .Update(dense_[c].data(), dense_[c].data() + chunk.size(), dense[c].data(), chunk.size(),
                version_, rate_scale);
  }
  for (size_t t = 0; t < slabs_.size(); ++t) {
    slabs_[t].Update(tables[t].ids, tables[t].values.data(), version_, rate_scale);
  }
}

Result<bool> Partition::IsNew(const BatchIdentity& batch) {
  if (!BatchWindow::IsPlace(batch.shard, batch.range, batch.batch)) {
    return InvalidArgument(fmt::format("batch {} of shard {} in the range from batch {}",
                                       batch.batch, batch.shard, batch.range));
  }
  switch (window_.Check(batch.epoch, batch.shard, batch.batch, batch.attempt, batch.range)) {
    case BatchWindow::Verdict::kApplied:
      return false;
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
  return true;
}

void Partition::Apply(const BatchIdentity& batch, int64_t version,
                      std::span<const std::span<const float>> dense,
                      std::span<const RowSpan> tables) {
  const int64_t staleness = std::max<int64_t>(1, version_ - version);
  Update(dense, tables, RateFactor(batch.rate_cuts) / static_cast<float>(staleness));
  window_.Applied(batch.epoch, batch.shard, batch.batch, batch.last);
}

Result<bool> Partition::PushLane(const BatchIdentity& batch, double weight, bool end,
                                 std::span<const std::span<const float>> dense,
                                 std::span<const RowSpan> tables) {
  const auto place = std::tie(batch.epoch, batch.round);
  const auto open = std::tie(position_.epoch, position_.round);
  if (place < open || (place == open && (position_.over || batch.batch < position_.step))) {
    return false;  // closed with this contribution already included
  }
  if (batch.lane >= batch.lanes || batch.lanes > kMaxLanes || batch.batch < BatchIndex::First()) {
    return InvalidArgument(
        fmt::format("lane {} of {} at step {}", batch.lane, batch.lanes, batch.batch));
  }
  if (place > open) {
    if (!position_.over || batch.batch != BatchIndex::First()) {
      return Internal(fmt::format("round {} of epoch {} begins before round {} has ended",
                                  batch.round, batch.epoch, position_.round));
    }
    position_ = {batch.epoch, batch.round, BatchIndex::First(), false};
    step_.StartRound(batch.lanes);
  }
  // A lane announces its end after its last gradient, whose step may still be open.
  const BatchIndex latest = position_.step + (end ? 1 : 0);
  if (batch.lanes != step_.lanes() || batch.batch > latest) {
    return Internal(fmt::format("step {} of lane {} of {} is ahead of the open step {}",
                                batch.batch, batch.lane, batch.lanes, position_.step));
  }
  if (end) {
    step_.End(batch.lane);
  } else if (!step_.Has(batch.lane)) {
    LaneGradient gradient;
    gradient.weight = weight;
    for (const std::span<const float>& chunk : dense) {
      gradient.dense.emplace_back(chunk.begin(), chunk.end());
    }
    for (const RowSpan& rows : tables) {
      gradient.tables.push_back(
          {{rows.ids.begin(), rows.ids.end()}, {rows.values.begin(), rows.values.end()}});
    }
    step_.Add(batch.lane, std::move(gradient));
  }
  bool closed = false;
  while (!position_.over && step_.Complete()) {
    CloseStep(RateFactor(batch.rate_cuts));
    closed = true;
  }
  return closed;
}

void Partition::CloseStep(float rate_scale) {
  if (step_.RoundOver()) {
    position_.over = true;
    return;
  }
  const LaneGradient sum = step_.Close();
  dense_before_.resize(dense_.size());
  rows_before_.resize(slabs_.size());
  std::vector<std::span<const float>> dense;
  std::vector<RowSpan> tables;
  for (size_t c = 0; c < dense_.size(); ++c) {
    dense_before_[c].assign(dense_[c].data(), dense_[c].data() + chunks()[c].size());
    dense.emplace_back(sum.dense[c]);
  }
  for (size_t t = 0; t < slabs_.size(); ++t) {
    rows_before_[t].ids = sum.tables[t].ids;
    rows_before_[t].values.resize(sum.tables[t].values.size());
    slabs_[t].Read(sum.tables[t].ids, rows_before_[t].values.data());
    tables.push_back({sum.tables[t].ids, sum.tables[t].values});
  }
  Update(dense, tables, rate_scale);
  ++position_.step;
}

Partition::Ready Partition::StepReady(const BatchIdentity& batch) const {
  const auto place = std::tie(batch.epoch, batch.round);
  const auto open = std::tie(position_.epoch, position_.round);
  if (place > open) {
    return position_.over && batch.batch == BatchIndex::First() ? Ready::kNow : Ready::kNotYet;
  }
  if (place == open && batch.batch + 1 == position_.step) {
    return Ready::kBefore;
  }
  // Only a worker that will find its push to be a repetition asks for values of a step that closed
  // long ago: any values do.
  return place < open || batch.batch <= position_.step ? Ready::kNow : Ready::kNotYet;
}

int64_t Partition::Read(Ready which, std::span<float* const> dense,
                        std::span<const std::span<const int64_t>> ids, std::span<float* const> rows,
                        EmbeddingSlab::Absent absent) const {
  const bool before = which == Ready::kBefore;
  for (size_t c = 0; c < dense.size(); ++c) {
    const std::vector<float>& from = before ? dense_before_[c] : dense_[c];
    std::copy_n(from.data(), chunks()[c].size(), dense[c]);
  }
  for (size_t t = 0; t < slabs_.size(); ++t) {
    slabs_[t].Read(ids[t], rows[t], absent);
    if (!before) {
      continue;
    }
    const size_t dimension = rules_.dimensions[t];
    std::unordered_map<int64_t, const float*> kept;
    for (size_t i = 0; i < rows_before_[t].ids.size(); ++i) {
      kept.emplace(rows_before_[t].ids[i], rows_before_[t].values.data() + i * dimension);
    }
    for (size_t i = 0; i < ids[t].size(); ++i) {
      const auto found = kept.find(ids[t][i]);
      if (found != kept.end()) {
        std::copy_n(found->second, dimension, rows[t] + i * dimension);
      }
    }
  }
  return VersionOf(which);
}

int64_t Partition::rows() const {
  int64_t rows = 0;
  for (const EmbeddingSlab& slab : slabs_) {
    rows += static_cast<int64_t>(slab.rows());
  }
  return rows;
}

Status Partition::KeepBest(const KeepOrder& order) {
  if (order.number == best_number_) {
    return Status();
  }
  if (order.number < best_number_) {
    return Status(Code::kAborted, fmt::format("the weights of {} are to be kept after those of {}",
                                              order.number, best_number_));
  }
  if (!order.versions.empty() && order.versions[index_] != version_) {
    return FailedPrecondition(
        fmt::format("version {} of partition {} was judged, and is to be kept; this is version {}",
                    order.versions[index_], index_, version_));
  }
  best_ = std::make_shared<models::NetworkWeights>(ExportLive());
  best_number_ = order.number;
  return Status();
}

models::NetworkWeights Partition::ExportLive() const {
  models::NetworkWeights weights;
  weights.dense.resize(rules_.tensors.size());
  for (size_t c = 0; c < dense_.size(); ++c) {
    std::vector<float>& tensor = weights.dense[chunks()[c].tensor];
    tensor.insert(tensor.end(), dense_[c].data(), dense_[c].data() + chunks()[c].size());
  }
  for (const EmbeddingSlab& slab : slabs_) {
    weights.tables.push_back(slab.Export());
  }
  return weights;
}

// Whether they can be the best weights of this particular partition.
bool Partition::FitsExport(const models::NetworkWeights& weights) const {
  std::vector<size_t> sizes(rules_.tensors.size(), 0);
  for (const PartitionLayout::Chunk& chunk : chunks()) {
    sizes[chunk.tensor] += chunk.size();
  }
  bool fits = weights.dense.size() == sizes.size() && weights.tables.size() == slabs_.size();
  for (size_t i = 0; fits && i < sizes.size(); ++i) {
    fits = weights.dense[i].size() == sizes[i];
  }
  for (size_t t = 0; fits && t < slabs_.size(); ++t) {
    fits = weights.tables[t].values.size() ==
           weights.tables[t].ids.size() * size_t{rules_.dimensions[t]};
  }
  return fits;
}

std::string DigestOf(const models::NetworkWeights& part) {
  return catalog::Sha256Hex(models::SaveWeights(part));
}

std::string DigestOf(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) {
    all += part;
  }
  return catalog::Sha256Hex(all);
}

Status CheckDigest(const std::string& found, const std::string& kept) {
  return found == kept ? Status()
                       : Internal("the weights that were judged best are not those that were kept")
                             .SqlState("XX001")
                             .Detail(fmt::format("SHA-256 {} was kept, {} was found", kept, found));
}

Result<models::NetworkWeights> MergePartitions(const std::vector<models::NetworkWeights>& parts,
                                               const PartitionLayout& layout,
                                               const models::Network& network) {
  models::NetworkWeights whole;
  for (const models::DenseTensor& tensor : network.dense()) {
    whole.dense.emplace_back(tensor.size());
  }
  if (parts.size() != layout.partitions()) {
    return Internal(fmt::format("{} of {} partitions", parts.size(), layout.partitions()));
  }
  for (uint32_t p = 0; p < layout.partitions(); ++p) {
    std::vector<size_t> taken(whole.dense.size(), 0);
    for (const PartitionLayout::Chunk& chunk : layout.chunks(p)) {
      if (parts[p].dense.size() != whole.dense.size() ||
          parts[p].dense[chunk.tensor].size() < taken[chunk.tensor] + chunk.size()) {
        return Internal(fmt::format("partition {} belongs to another model", p));
      }
      std::copy_n(parts[p].dense[chunk.tensor].data() + taken[chunk.tensor], chunk.size(),
                  whole.dense[chunk.tensor].data() + chunk.begin);
      taken[chunk.tensor] += chunk.size();
    }
  }
  for (size_t t = 0; t < network.tables().size(); ++t) {
    const size_t dimension = network.tables()[t].dimension;
    std::vector<std::pair<int64_t, const float*>> rows;
    for (const models::NetworkWeights& part : parts) {
      if (part.tables.size() != network.tables().size()) {
        return Internal("a partition belongs to another model");
      }
      if (part.tables[t].values.size() != part.tables[t].ids.size() * dimension) {
        return Internal("a partition has rows of another model");
      }
      for (size_t i = 0; i < part.tables[t].ids.size(); ++i) {
        rows.emplace_back(part.tables[t].ids[i], part.tables[t].values.data() + i * dimension);
      }
    }
    std::sort(rows.begin(), rows.end());
    models::NetworkWeights::Table table;
    for (const auto& [id, values] : rows) {
      table.ids.push_back(id);
      table.values.insert(table.values.end(), values, values + dimension);
    }
    whole.tables.push_back(std::move(table));
  }
  RETURN_IF_ERROR(models::CheckShape(whole, network));
  return whole;
}

}  // namespace sluice::elastic
