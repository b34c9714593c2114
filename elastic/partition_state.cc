// The serialised form of a partition: PartitionStateProto, then the CRC-32C of its bytes. Used by
// moves, by the first copy of a replica and by checkpoints.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "elastic/crc32c.h"
#include "elastic/elastic.pb.h"
#include "elastic/partition.h"

namespace sluice::elastic {
namespace {

template <typename Number>
std::string Bytes(const std::vector<Number>& numbers) {
  return std::string(reinterpret_cast<const char*>(numbers.data()),
                     numbers.size() * sizeof(Number));
}

template <typename Number>
bool Numbers(const std::string& bytes, std::vector<Number>* numbers) {
  if (bytes.size() % sizeof(Number) != 0) {
    return false;
  }
  numbers->resize(bytes.size() / sizeof(Number));
  if (!bytes.empty()) {
    std::memcpy(numbers->data(), bytes.data(), bytes.size());
  }
  return true;
}

void Write(const RowGradients& rows, RowsProto* proto) {
  proto->set_ids(Bytes(rows.ids));
  proto->set_values(Bytes(rows.values));
}

bool Read(const RowsProto& proto, size_t dimension, RowGradients* rows) {
  return Numbers(proto.ids(), &rows->ids) && Numbers(proto.values(), &rows->values) &&
         rows->values.size() == rows->ids.size() * dimension;
}

template <typename Tables>
bool ReadTables(const Tables& protos, const std::vector<uint32_t>& dimensions,
                std::vector<RowGradients>* tables) {
  tables->resize(dimensions.size());
  if (static_cast<size_t>(protos.size()) != dimensions.size()) {
    return false;
  }
  for (size_t t = 0; t < dimensions.size(); ++t) {
    if (!Read(protos.Get(static_cast<int>(t)), dimensions[t], &(*tables)[t])) {
      return false;
    }
  }
  return true;
}

template <typename Strings>
bool ReadDense(const Strings& strings, const std::vector<PartitionLayout::Chunk>& chunks,
               std::vector<std::vector<float>>* dense) {
  dense->resize(chunks.size());
  if (static_cast<size_t>(strings.size()) != chunks.size()) {
    return false;
  }
  for (size_t c = 0; c < chunks.size(); ++c) {
    if (!Numbers(strings.Get(static_cast<int>(c)), &(*dense)[c]) ||
        (*dense)[c].size() != chunks[c].size()) {
      return false;
    }
  }
  return true;
}

void WriteWindow(const BatchWindow& window, WindowProto* proto) {
  proto->set_epoch(window.epoch());
  for (const BatchWindow::Shard& shard : window.Save()) {
    proto->add_shards(shard.shard);
    proto->add_next(shard.next);
    proto->add_attempts(shard.attempt);
    proto->add_ranges(shard.range);
  }
  const std::vector<bool>& finished = window.finished();
  proto->mutable_finished()->assign((finished.size() + 7) / 8, '\0');
  for (size_t shard = 0; shard < finished.size(); ++shard) {
    if (finished[shard]) {
      char& bits = (*proto->mutable_finished())[shard / 8];
      bits = static_cast<char>(bits | 1 << shard % 8);
    }
  }
}

bool ReadWindow(const WindowProto& proto, BatchWindow* window) {
  if (proto.shards_size() != proto.next_size() || proto.shards_size() != proto.attempts_size() ||
      proto.shards_size() != proto.ranges_size()) {
    return false;
  }
  std::vector<BatchWindow::Shard> shards;
  for (int i = 0; i < proto.shards_size(); ++i) {
    shards.push_back({proto.shards(i), proto.next(i), proto.attempts(i), proto.ranges(i)});
  }
  std::vector<bool> finished(proto.finished().size() * 8);
  for (size_t shard = 0; shard < finished.size(); ++shard) {
    finished[shard] = (proto.finished()[shard / 8] >> shard % 8 & 1) != 0;
  }
  window->Restore(proto.epoch(), shards, std::move(finished));
  return true;
}

void WriteStep(const SynchronousStep& step, OpenStepProto* proto) {
  for (uint32_t lane = 0; lane < step.lanes(); ++lane) {
    LaneProto* one = proto->add_lanes();
    one->set_ended(step.ended()[lane]);
    const std::optional<LaneGradient>& gradient = step.gradients()[lane];
    one->set_has_gradient(gradient.has_value());
    if (gradient.has_value()) {
      one->set_weight(gradient->weight);
      for (const std::vector<float>& chunk : gradient->dense) {
        one->add_dense(Bytes(chunk));
      }
      for (const RowGradients& rows : gradient->tables) {
        Write(rows, one->add_tables());
      }
    }
  }
}

}  // namespace

PartitionImage::PartitionImage(std::unique_ptr<PartitionStateProto> state,
                               std::shared_ptr<const models::NetworkWeights> best)
    : state_(std::move(state)), best_(std::move(best)) {}
PartitionImage::PartitionImage(PartitionImage&&) noexcept = default;
PartitionImage& PartitionImage::operator=(PartitionImage&&) noexcept = default;
PartitionImage::~PartitionImage() = default;

std::string PartitionImage::Encode() && {
  if (best_ != nullptr) {
    state_->set_best(models::SaveWeights(*best_));
  }
  std::string bytes = state_->SerializeAsString();
  state_.reset();
  best_.reset();
  const uint32_t crc = Crc32c(bytes);
  bytes.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  return bytes;
}

PartitionImage Partition::Capture() const {
  auto state = std::make_unique<PartitionStateProto>();
  PartitionStateProto& proto = *state;
  proto.set_partition(index_);
  proto.set_partitions(rules_.layout.partitions());
  proto.set_version(version_);
  for (const std::vector<float>& chunk : dense_) {
    proto.add_dense(Bytes(chunk));
  }
  for (const EmbeddingSlab& slab : slabs_) {
    EmbeddingSlab::Image rows = slab.Save();
    SlabProto* table = proto.add_tables();
    table->set_ids(std::move(rows.ids));
    table->set_values(std::move(rows.values));
    table->set_updates(std::move(rows.updates));
  }
  WriteWindow(window_, proto.mutable_window());
  OpenStepProto* open = proto.mutable_open();
  open->set_epoch(position_.epoch);
  open->set_round(position_.round);
  open->set_step(position_.step);
  open->set_over(position_.over);
  WriteStep(step_, open);
  for (const std::vector<float>& chunk : dense_before_) {
    proto.add_dense_before(Bytes(chunk));
  }
  for (const RowGradients& rows : rows_before_) {
    Write(rows, proto.add_tables_before());
  }
  return {std::move(state), best_};
}

Status Partition::Load(std::string_view bytes) {
  const auto damaged = [this](std::string_view what) {
    return InvalidArgument(fmt::format("the state of partition {} {}", index_, what));
  };
  uint32_t crc = 0;
  if (bytes.size() < sizeof(crc)) {
    return damaged("is damaged: it ends too early");
  }
  std::memcpy(&crc, bytes.data() + bytes.size() - sizeof(crc), sizeof(crc));
  bytes.remove_suffix(sizeof(crc));
  PartitionStateProto proto;
  if (Crc32c(bytes) != crc || !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return damaged("is damaged: its checksum does not fit");
  }
  if (proto.partition() != index_ || proto.partitions() != rules_.layout.partitions()) {
    return damaged(fmt::format("is partition {} of {}; expected one of {}", proto.partition(),
                               proto.partitions(), rules_.layout.partitions()));
  }
  // All of it is built beside what there is, and takes its place at the end.
  Partition fresh(rules_, index_);
  const Status other = damaged("belongs to another model");
  if (static_cast<size_t>(proto.dense_size()) != dense_.size() ||
      static_cast<size_t>(proto.tables_size()) != slabs_.size()) {
    return other;
  }
  for (size_t c = 0; c < dense_.size(); ++c) {
    const size_t size = fresh.dense_[c].size();
    if (!Numbers(proto.dense(static_cast<int>(c)), &fresh.dense_[c]) ||
        fresh.dense_[c].size() != size) {
      return other;
    }
  }
  for (size_t t = 0; t < slabs_.size(); ++t) {
    const SlabProto& table = proto.tables(static_cast<int>(t));
    EmbeddingSlab::Rows rows;
    if (!Numbers(table.ids(), &rows.ids) || !Numbers(table.values(), &rows.values) ||
        !Numbers(table.updates(), &rows.updates)) {
      return other;
    }
    RETURN_IF_ERROR(fresh.slabs_[t].Restore(rows));
  }
  const OpenStepProto& open = proto.open();
  fresh.position_ = {open.epoch(), open.round(), open.step(), open.over()};
  std::vector<bool> ended;
  std::vector<std::optional<LaneGradient>> gradients;
  for (const LaneProto& lane : open.lanes()) {
    ended.push_back(lane.ended());
    gradients.emplace_back();
    if (lane.has_gradient()) {
      LaneGradient& gradient = gradients.back().emplace();
      gradient.weight = lane.weight();
      if (!ReadDense(lane.dense(), chunks(), &gradient.dense) ||
          !ReadTables(lane.tables(), rules_.dimensions, &gradient.tables)) {
        return other;
      }
    }
  }
  fresh.step_.Restore(std::move(ended), std::move(gradients));
  const bool has_before = proto.dense_before_size() + proto.tables_before_size() > 0;
  if (has_before && (!ReadDense(proto.dense_before(), chunks(), &fresh.dense_before_) ||
                     !ReadTables(proto.tables_before(), rules_.dimensions, &fresh.rows_before_))) {
    return other;
  }
  if (!proto.best().empty()) {
    ASSIGN_OR_RETURN(models::NetworkWeights best, models::LoadWeights(proto.best()));
    fresh.best_ = std::make_shared<models::NetworkWeights>(std::move(best));
  }
  if (!ReadWindow(proto.window(), &fresh.window_)) {
    return other;
  }
  version_ = proto.version();
  for (size_t c = 0; c < dense_.size(); ++c) {
    std::copy(fresh.dense_[c].begin(), fresh.dense_[c].end(), dense_[c].begin());  // in place
  }
  slabs_.swap(fresh.slabs_);
  window_ = std::move(fresh.window_);
  best_ = std::move(fresh.best_);
  step_ = std::move(fresh.step_);
  position_ = fresh.position_;
  dense_before_ = std::move(fresh.dense_before_);
  rows_before_ = std::move(fresh.rows_before_);
  return Status();
}

}  // namespace sluice::elastic
