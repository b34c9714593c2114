// The serialised form of a partition, used by moves, by the first copy of a replica and by
// checkpoints: parts (byte_parts.h) of a PartitionStateProto without its long fields, then these,
// a block for each in the order of EachBlock. No message of protobuf holds 2 GiB. What was written
// before is read, too: a whole PartitionStateProto, then the CRC-32C of its bytes.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <utility>

#include "elastic/parameters/packed_numbers.h"
#include "elastic/parameters/partition.h"
#include "elastic/parameters/partition.pb.h"
#include "elastic/storage/crc32c.h"

namespace sluice::elastic {
namespace {

void Write(const RowGradients& rows, RowsProto* proto) {
  proto->set_ids(Pack(rows.ids));
  proto->set_values(Pack(rows.values));
}

bool Read(const RowsProto& proto, size_t dimension, RowGradients* rows) {
  return Unpack(proto.ids(), &rows->ids).ok() && Unpack(proto.values(), &rows->values).ok() &&
         rows->values.size() == rows->ids.size() * dimension;
}

template <typename Tables>
bool ReadTables(const Tables& protos, const std::vector<models::EmbeddingTable>& descriptions,
                std::vector<RowGradients>* tables) {
  tables->resize(descriptions.size());
  if (static_cast<size_t>(protos.size()) != descriptions.size()) {
    return false;
  }
  for (size_t t = 0; t < descriptions.size(); ++t) {
    RowGradients& rows = (*tables)[t];
    const int64_t end = descriptions[t].rows;
    if (!Read(protos.Get(static_cast<int>(t)), descriptions[t].dimension, &rows) ||
        (end > 0 && std::any_of(rows.ids.begin(), rows.ids.end(),
                                [end](int64_t id) { return id < 0 || id >= end; }))) {
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
    if (!Unpack(strings.Get(static_cast<int>(c)), &(*dense)[c]).ok() ||
        (*dense)[c].size() != chunks[c].size()) {
      return false;
    }
  }
  return true;
}

// Calls the function for all data that grow with the model.
template <typename Function>
Status EachBlock(PartitionStateProto* proto, const Function& function) {
  const auto each_row = [&](auto* tables) -> Status {
    for (RowsProto& rows : *tables) {
      RETURN_IF_ERROR(function(rows.mutable_ids()));
      RETURN_IF_ERROR(function(rows.mutable_values()));
    }
    return Status();
  };
  const auto each = [&](auto* blocks) -> Status {
    for (std::string& block : *blocks) {
      RETURN_IF_ERROR(function(&block));
    }
    return Status();
  };
  RETURN_IF_ERROR(each(proto->mutable_dense()));
  for (SlabProto& table : *proto->mutable_tables()) {
    RETURN_IF_ERROR(function(table.mutable_ids()));
    RETURN_IF_ERROR(function(table.mutable_values()));
    RETURN_IF_ERROR(function(table.mutable_unused()));
  }
  for (LaneProto& lane : *proto->mutable_open()->mutable_lanes()) {
    RETURN_IF_ERROR(each(lane.mutable_dense()));
    RETURN_IF_ERROR(each_row(lane.mutable_tables()));
  }
  RETURN_IF_ERROR(each(proto->mutable_dense_before()));
  RETURN_IF_ERROR(each_row(proto->mutable_tables_before()));
  return function(proto->mutable_best());
}

// Empties the message bit by bit, so that it and its bytes do not both take memory.
Status WriteState(PartitionStateProto* state, const models::NetworkWeights* best,
                  PartWriter* writer) {
  std::deque<std::string> blocks;
  RETURN_IF_ERROR(EachBlock(state, [&](std::string* block) {
    blocks.emplace_back().swap(*block);
    return Status();
  }));
  const size_t head = state->ByteSizeLong();
  if (head > kMaxPartBytes) {
    return ResourceExhausted(
        fmt::format("partition {} remembers {} bytes of open shards; {} can "
                    "be kept",
                    state->partition(), head, kMaxPartBytes));
  }
  RETURN_IF_ERROR(writer->Block(state->SerializeAsString()));
  for (; blocks.size() > 1; blocks.pop_front()) {
    RETURN_IF_ERROR(writer->Block(blocks.front()));
  }
  return writer->Block(best != nullptr ? models::SaveWeights(*best) : "");
}

// Missing fields of the message, or damage to the bytes.
Status ReadState(ByteSource& bytes, PartitionStateProto* state) {
  std::string mark(std::min<uint64_t>(PartReader::kMarkBytes, bytes.left()), '\0');
  RETURN_IF_ERROR(bytes.Read(mark.data(), mark.size()));
  if (!PartReader::IsMark(mark)) {
    uint32_t crc = 0;
    if (mark.size() + bytes.left() < sizeof(crc)) {
      return Internal("it is damaged: it ends too early");
    }
    if (bytes.left() > static_cast<uint64_t>(std::numeric_limits<int>::max())) {
      return Internal("it is damaged: it begins with no mark");
    }
    std::string whole = std::move(mark);
    const size_t begin = whole.size();
    whole.resize(begin + bytes.left());
    RETURN_IF_ERROR(bytes.Read(whole.data() + begin, whole.size() - begin));
    std::memcpy(&crc, whole.data() + whole.size() - sizeof(crc), sizeof(crc));
    whole.resize(whole.size() - sizeof(crc));
    return Crc32c(whole) == crc && state->ParseFromString(whole)
               ? Status()
               : Internal("it is damaged: its checksum does not fit");
  }
  PartReader reader(bytes);
  ASSIGN_OR_RETURN(const std::string head, reader.Block(kMaxPartBytes));
  if (!state->ParseFromString(head)) {
    return Internal("it is damaged: it does not begin with what it has");
  }
  RETURN_IF_ERROR(EachBlock(state, [&](std::string* block) -> Status {
    ASSIGN_OR_RETURN(*block, reader.Block(std::numeric_limits<uint64_t>::max()));
    return Status();
  }));
  return reader.Finish();
}

void WriteWindow(const BatchWindow& window, WindowProto* proto) {
  proto->set_epoch(window.epoch().value());
  for (const BatchWindow::Shard& shard : window.Save()) {
    proto->add_shards(shard.shard.value());
    proto->add_next(shard.next.value());
    proto->add_attempts(shard.attempt.value());
    proto->add_ranges(shard.range.value());
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
    const BatchWindow::Shard shard{ShardId(proto.shards(i)), BatchIndex(proto.next(i)),
                                   Attempt(proto.attempts(i)), RangeId(proto.ranges(i))};
    if (!BatchWindow::IsPlace(shard.shard, shard.range, shard.next)) {
      return false;
    }
    shards.push_back(shard);
  }
  std::vector<bool> finished(proto.finished().size() * 8);
  for (size_t shard = 0; shard < finished.size(); ++shard) {
    finished[shard] = (proto.finished()[shard / 8] >> shard % 8 & 1) != 0;
  }
  window->Restore(Epoch(proto.epoch()), shards, std::move(finished));
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
        one->add_dense(Pack(chunk));
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

Status PartitionImage::Encode(const PartSink& sink, size_t part_bytes) && {
  PartWriter writer(part_bytes, sink);
  RETURN_IF_ERROR(WriteState(state_.get(), best_.get(), &writer));
  state_.reset();
  best_.reset();
  return writer.Finish();
}

Result<std::string> PartitionImage::Encode() && {
  std::string all;
  RETURN_IF_ERROR(std::move(*this).Encode([&all](const std::string& part) {
    all += part;
    return Status();
  }));
  return all;
}

PartitionImage Partition::Capture() const {
  auto state = std::make_unique<PartitionStateProto>();
  PartitionStateProto& proto = *state;
  proto.set_partition(index_);
  proto.set_partitions(rules_.layout.partitions());
  proto.set_version(version_);
  for (const std::vector<float>& chunk : dense_) {
    proto.add_dense(Pack(chunk));
  }
  for (const EmbeddingSlab& slab : slabs_) {
    EmbeddingSlab::Image rows = slab.Save();
    SlabProto* table = proto.add_tables();
    table->set_ids(std::move(rows.ids));
    table->set_values(std::move(rows.values));
  }
  WriteWindow(window_, proto.mutable_window());
  OpenStepProto* open = proto.mutable_open();
  open->set_epoch(position_.epoch.value());
  open->set_round(position_.round.value());
  open->set_step(position_.step.value());
  open->set_over(position_.over);
  WriteStep(step_, open);
  for (const std::vector<float>& chunk : dense_before_) {
    proto.add_dense_before(Pack(chunk));
  }
  for (const RowGradients& rows : rows_before_) {
    Write(rows, proto.add_tables_before());
  }
  proto.set_best_number(best_number_);
  return {std::move(state), best_};
}

Status Partition::Load(std::string_view bytes) {
  MemorySource source(bytes);
  return Load(source);
}

Status Partition::Load(ByteSource& bytes) {
  const auto damaged = [this](std::string_view what) {
    return InvalidArgument(fmt::format("the state of partition {} {}", index_, what));
  };
  PartitionStateProto proto;
  if (Status read = ReadState(bytes, &proto); !read.ok()) {
    return std::move(read).Because(fmt::format("the state of partition {}", index_));
  }
  if (proto.partition() != index_ || proto.partitions() != rules_.layout.partitions()) {
    return damaged(fmt::format("is partition {} of {}; expected one of {}", proto.partition(),
                               proto.partitions(), rules_.layout.partitions()));
  }
  // All of it is built separately, and replaces the current state at the end.
  Partition fresh(rules_, index_);
  Status other = damaged("belongs to another model");
  if (static_cast<size_t>(proto.dense_size()) != dense_.size() ||
      static_cast<size_t>(proto.tables_size()) != slabs_.size()) {
    return other;
  }
  for (size_t c = 0; c < dense_.size(); ++c) {
    const size_t size = fresh.dense_[c].size();
    const std::string bytes_of_chunk = std::move(*proto.mutable_dense(static_cast<int>(c)));
    if (!Unpack(bytes_of_chunk, &fresh.dense_[c]).ok() || fresh.dense_[c].size() != size) {
      return other;
    }
  }
  for (size_t t = 0; t < slabs_.size(); ++t) {
    SlabProto& table = *proto.mutable_tables(static_cast<int>(t));
    RETURN_IF_ERROR(fresh.slabs_[t].Restore(
        {std::move(*table.mutable_ids()), std::move(*table.mutable_values())}));
  }
  const OpenStepProto& open = proto.open();
  if (proto.version() < 0 || open.round() < 0 || open.step() < 0 ||
      static_cast<uint32_t>(open.lanes_size()) > kMaxLanes ||
      (!open.over() && open.lanes_size() == 0)) {
    return damaged("has a step that cannot be open");
  }
  fresh.position_ = {Epoch(open.epoch()), RoundIndex(open.round()), BatchIndex(open.step()),
                     open.over()};
  std::vector<bool> ended;
  std::vector<std::optional<LaneGradient>> gradients;
  for (const LaneProto& lane : open.lanes()) {
    ended.push_back(lane.ended());
    gradients.emplace_back();
    if (lane.has_gradient()) {
      LaneGradient& gradient = gradients.back().emplace();
      gradient.weight = lane.weight();
      if (!ReadDense(lane.dense(), chunks(), &gradient.dense) ||
          !ReadTables(lane.tables(), rules_.tables, &gradient.tables)) {
        return other;
      }
    }
  }
  fresh.step_.Restore(std::move(ended), std::move(gradients));
  const bool has_before = proto.dense_before_size() + proto.tables_before_size() > 0;
  if (has_before && (!ReadDense(proto.dense_before(), chunks(), &fresh.dense_before_) ||
                     !ReadTables(proto.tables_before(), rules_.tables, &fresh.rows_before_))) {
    return other;
  }
  if (!proto.best().empty()) {
    ASSIGN_OR_RETURN(models::NetworkWeights best, models::LoadWeights(proto.best()));
    if (!FitsExport(best)) {
      return other;
    }
    fresh.best_ = std::make_shared<models::NetworkWeights>(std::move(best));
  }
  if (proto.best_number() < 0) {
    return damaged("has weights that it was not asked to keep");
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
  best_number_ = proto.best_number();
  step_ = std::move(fresh.step_);
  position_ = fresh.position_;
  dense_before_ = std::move(fresh.dense_before_);
  rows_before_ = std::move(fresh.rows_before_);
  return Status();
}

}  // namespace sluice::elastic
