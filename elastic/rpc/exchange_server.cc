#include <fmt/core.h>

#include <cstring>

#include "elastic/parameters/bfloat16.h"
#include "elastic/rpc/exchange_internal.h"
#include "elastic/rpc/wire_internal.h"

namespace sluice::elastic {
namespace {

// The numbers of a push: in place if they are floats.
Result<std::span<const float>> Numbers(const std::string& bytes, bool bf16, UnpackedPush* push) {
  if (!bf16) {
    return View<float>(bytes);
  }
  ASSIGN_OR_RETURN(const std::span<const uint16_t> halves, View<uint16_t>(bytes));
  std::vector<float>& numbers = push->widened.emplace_back(halves.size());
  WidenBfloat16(halves.data(), numbers);
  return std::span<const float>(numbers);
}

// Room for the numbers of an answer, inside the message if they are sent as floats.
class Answer {
 public:
  Answer(bool bf16, size_t count, std::string* bytes) : bytes_(bytes) {
    if (bf16) {
      floats_.resize(count);
      numbers_ = floats_.data();
    } else {
      numbers_ = Room<float>(count, bytes);
    }
  }
  float* numbers() const { return numbers_; }
  // Keeps only these ranges, ascending, and moves them into the message.
  void Finish(bool bf16, std::span<const std::span<const float>> kept) {
    size_t count = 0;
    for (const std::span<const float>& range : kept) {
      if (numbers_ + count != range.data() && !range.empty()) {
        std::memmove(numbers_ + count, range.data(), range.size_bytes());
      }
      count += range.size();
    }
    if (bf16) {
      NarrowToBfloat16(std::span(floats_).first(count), Room<uint16_t>(count, bytes_));
    } else {
      bytes_->resize(count * sizeof(float));
    }
  }

 private:
  std::string* const bytes_;
  std::vector<float> floats_;
  float* numbers_ = nullptr;
};

// Each once, in order: a partition's data are found by its index.
Status CheckPartitions(std::span<const uint32_t> partitions, uint32_t count) {
  for (size_t i = 0; i < partitions.size(); ++i) {
    if (partitions[i] >= count || (i > 0 && partitions[i] <= partitions[i - 1])) {
      return InvalidArgument(
          fmt::format("partition {} of {} is not in its place", partitions[i], count));
    }
  }
  return Status();
}

// A different number of partitions means a different map: the worker is told to fetch the current
// one.
Status CheckCount(std::span<const int64_t> versions, std::span<const uint32_t> partitions) {
  return versions.size() == partitions.size()
             ? Status()
             : NotFound(
                   fmt::format("{} versions of {} partitions", versions.size(), partitions.size()));
}

// Before room for it is allocated.
Status CheckAnswer(const PullProto& proto, const ParameterRules& rules,
                   std::span<const uint32_t> partitions) {
  size_t numbers = 0;
  for (size_t t = 0; t < rules.tables.size(); ++t) {
    numbers += proto.tables(static_cast<int>(t)).size() / sizeof(int64_t) * rules.dimensions[t];
  }
  for (uint32_t partition : partitions) {
    numbers += rules.layout.dense_size(partition);
  }
  const size_t bytes = numbers * (proto.bf16() ? sizeof(uint16_t) : sizeof(float));
  return bytes <= static_cast<size_t>(kMaxMessageBytes) ? Status()
                                                        : TooLarge("the answer to a pull", bytes);
}

}  // namespace

Status Unpack(const PushProto& proto, const PartitionLayout& layout,
              std::span<const uint32_t> partitions, UnpackedPush* push) {
  RETURN_IF_ERROR(CheckPartitions(partitions, layout.partitions()));
  push->partitions.assign(partitions.begin(), partitions.end());
  PushRequest& request = push->request;
  request.partitions = push->partitions;
  request.batch = FromProto(proto.batch());
  request.weight = proto.weight();
  request.end = proto.end();
  if (request.end) {
    return Status();
  }
  ASSIGN_OR_RETURN(request.versions, View<int64_t>(proto.versions()));
  RETURN_IF_ERROR(CheckCount(request.versions, partitions));
  ASSIGN_OR_RETURN(const std::span<const float> dense, Numbers(proto.dense(), proto.bf16(), push));
  size_t begin = 0;
  for (uint32_t partition : partitions) {
    for (const PartitionLayout::Chunk& chunk : layout.chunks(partition)) {
      if (chunk.size() > dense.size() - begin) {
        return InvalidArgument(
            fmt::format("a push of {} dense numbers to a server that has more", dense.size()));
      }
      request.dense.push_back(dense.subspan(begin, chunk.size()));
      begin += chunk.size();
    }
  }
  if (begin != dense.size()) {
    return InvalidArgument(
        fmt::format("a push of {} dense numbers to a server that has {}", dense.size(), begin));
  }
  for (const RowsProto& table : proto.tables()) {
    RowSpan rows;
    ASSIGN_OR_RETURN(rows.ids, View<int64_t>(table.ids()));
    ASSIGN_OR_RETURN(rows.values, Numbers(table.values(), proto.bf16(), push));
    request.tables.push_back(rows);
  }
  return Status();
}

Status AnswerPull(const PullProto& proto, MapVersion map_version,
                  std::span<const uint32_t> partitions, double wait_seconds, ParameterShard& shard,
                  ExchangeReply* reply) {
  const ParameterRules& rules = shard.rules();
  const size_t tables = rules.tables.size();
  if (static_cast<size_t>(proto.tables_size()) != tables) {
    return InvalidArgument(
        fmt::format("a pull names {} tables; the model has {}", proto.tables_size(), tables));
  }
  PullRequest pull;
  pull.map_version = map_version;
  pull.partitions = partitions;
  pull.batch = FromProto(proto.batch());
  pull.purpose = proto.evaluation() ? Purpose::kEvaluation : Purpose::kStep;
  ASSIGN_OR_RETURN(pull.known, View<int64_t>(proto.known()));
  if (!pull.known.empty()) {
    RETURN_IF_ERROR(CheckCount(pull.known, partitions));
  }
  RETURN_IF_ERROR(CheckAnswer(proto, rules, partitions));
  PullTarget target;
  target.versions = {Room<int64_t>(partitions.size(), reply->mutable_versions()),
                     partitions.size()};
  std::vector<Answer> rows;
  for (size_t t = 0; t < tables; ++t) {
    ASSIGN_OR_RETURN(const std::span<const int64_t> ids,
                     View<int64_t>(proto.tables(static_cast<int>(t))));
    pull.tables.push_back(ids);
    rows.emplace_back(proto.bf16(), ids.size() * rules.dimensions[t], reply->add_tables());
    target.tables.push_back(rows.back().numbers());
  }
  size_t dense_size = 0;
  for (uint32_t partition : partitions) {
    dense_size += rules.layout.dense_size(partition);
  }
  Answer dense(proto.bf16(), dense_size, reply->mutable_dense());
  float* place = dense.numbers();
  std::vector<std::span<const float>> by_partition;
  for (uint32_t partition : partitions) {
    by_partition.emplace_back(place, rules.layout.dense_size(partition));
    for (const PartitionLayout::Chunk& chunk : rules.layout.chunks(partition)) {
      target.dense.push_back(place);
      place += chunk.size();
    }
  }
  const Status status = shard.Pull(pull, target, wait_seconds);
  if (status.code() == Code::kDeadlineExceeded) {
    reply->Clear();
    reply->set_not_open(true);
    return Status();
  }
  RETURN_IF_ERROR(status);
  std::vector<std::span<const float>> changed;
  for (size_t i = 0; i < partitions.size(); ++i) {
    if (!pull.Knows(i, target.versions[i])) {
      changed.push_back(by_partition[i]);
    }
  }
  dense.Finish(proto.bf16(), changed);
  for (size_t t = 0; t < tables; ++t) {
    const std::span<const float> all(target.tables[t], pull.tables[t].size() * rules.dimensions[t]);
    rows[t].Finish(proto.bf16(), std::span(&all, 1));
  }
  return Status();
}

}  // namespace sluice::elastic
