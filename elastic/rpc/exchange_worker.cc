#include <fmt/core.h>

#include <cstring>
#include <numeric>

#include "elastic/parameters/bfloat16.h"
#include "elastic/rpc/exchange_internal.h"
#include "elastic/rpc/wire_internal.h"

namespace sluice::elastic {
namespace {

constexpr int64_t kUnknownVersion = -1;

size_t BytesOf(size_t numbers, bool bf16) {
  return numbers * (bf16 ? sizeof(uint16_t) : sizeof(float));
}

void Append(std::span<const float> numbers, bool bf16, std::string* to) {
  if (!bf16) {
    to->append(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
    return;
  }
  const size_t begin = to->size();
  to->resize(begin + BytesOf(numbers.size(), true));
  NarrowToBfloat16(numbers, reinterpret_cast<uint16_t*>(to->data() + begin));
}

// Returns the position of the next numbers.
const char* Copy(const char* from, bool bf16, std::span<float> to) {
  if (bf16) {
    WidenBfloat16(reinterpret_cast<const uint16_t*>(from), to);
  } else if (!to.empty()) {
    std::memcpy(to.data(), from, to.size_bytes());
  }
  return from + BytesOf(to.size(), bf16);
}

template <typename RowOrder, typename Function>
void EachPlace(const ExchangePart& part, const RowOrder& order, const Function& function) {
  for (uint32_t partition : part.partitions) {
    for (size_t i = order.begin[partition]; i < order.begin[partition + 1]; ++i) {
      function(order.places[i]);
    }
  }
}

}  // namespace

ExchangePacker::ExchangePacker(const models::Network& network, uint32_t partitions, bool bf16)
    : network_(network),
      layout_(network, partitions),
      bf16_(bf16),
      versions_(partitions, 0),
      current_(partitions, 0) {
  for (const models::DenseTensor& tensor : network.dense()) {
    dense_.emplace_back(tensor.size());
  }
}

void ExchangePacker::Forget() {
  current_.assign(current_.size(), 0);
}

ExchangePacker::RowOrder ExchangePacker::OrderRows(size_t table,
                                                   const std::vector<int64_t>& ids) const {
  RowOrder order;
  const uint32_t partitions = layout_.partitions();
  std::vector<uint32_t> partition_of(ids.size());
  order.begin.assign(partitions + 1, 0);
  for (size_t i = 0; i < ids.size(); ++i) {
    partition_of[i] = layout_.PartitionOf(table, ids[i]);
    ++order.begin[partition_of[i] + 1];
  }
  std::partial_sum(order.begin.begin(), order.begin.end(), order.begin.begin());
  std::vector<size_t> next(order.begin.begin(), order.begin.end() - 1);
  order.places.resize(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    order.places[next[partition_of[i]]++] = static_cast<uint32_t>(i);
  }
  return order;
}

void ExchangePacker::Pack(const Work& work, std::span<ExchangePart* const> parts) {
  for (ExchangePart* part : parts) {
    part->request.Clear();
    if (work.pull != nullptr) {
      AddPull(work, part);
    }
  }
  for (const BatchPush& push : work.pushes) {
    AddPush(push, parts);
  }
  pulled_.resize(network_.tables().size());
  for (size_t t = 0; work.pull != nullptr && t < network_.tables().size(); ++t) {
    AddPullRows(*work.wanted, t, parts);
  }
}

void ExchangePacker::AddPush(const BatchPush& push, std::span<ExchangePart* const> parts) const {
  std::vector<PushProto*> to;
  for (ExchangePart* part : parts) {
    ExchangeRequest& request = part->request;
    to.push_back(request.has_push() ? request.add_further_pushes() : request.mutable_push());
    ToProto(push.batch, to.back()->mutable_batch());
    to.back()->set_weight(push.weight);
    to.back()->set_end(push.gradient == nullptr);
    if (push.gradient != nullptr) {
      AddDense(push, *part, to.back());
    }
  }
  for (size_t t = 0; push.gradient != nullptr && t < network_.tables().size(); ++t) {
    AddPushRows(push, t, parts, to);
  }
}

void ExchangePacker::AddDense(const BatchPush& push, const ExchangePart& part,
                              PushProto* to) const {
  to->set_bf16(bf16_);
  for (uint32_t partition : part.partitions) {
    to->mutable_versions()->append(reinterpret_cast<const char*>(&versions_[partition]),
                                   sizeof(int64_t));
    for (const PartitionLayout::Chunk& chunk : layout_.chunks(partition)) {
      const std::span<const float> tensor(push.gradient->dense[chunk.tensor]);
      Append(tensor.subspan(chunk.begin, chunk.size()), bf16_, to->mutable_dense());
    }
  }
}

void ExchangePacker::AddPull(const Work& work, ExchangePart* part) const {
  PullProto* pull = part->request.mutable_pull();
  ToProto(*work.pull, pull->mutable_batch());
  pull->set_evaluation(work.purpose == Purpose::kEvaluation);
  pull->set_bf16(bf16_);
  for (uint32_t partition : part->partitions) {
    const int64_t known = current_[partition] != 0 ? versions_[partition] : kUnknownVersion;
    pull->mutable_known()->append(reinterpret_cast<const char*>(&known), sizeof(known));
  }
}

void ExchangePacker::AddPushRows(const BatchPush& push, size_t table,
                                 std::span<ExchangePart* const> parts,
                                 std::span<PushProto* const> to) const {
  const std::vector<int64_t>& ids = push.view->tables[table].ids;
  const std::span<const float> gradients(push.gradient->tables[table]);
  const size_t dimension = network_.tables()[table].dimension;
  const RowOrder order = OrderRows(table, ids);
  for (size_t i = 0; i < parts.size(); ++i) {
    RowsProto* rows = to[i]->add_tables();
    std::string* to_ids = rows->mutable_ids();
    std::string* to_values = rows->mutable_values();
    EachPlace(*parts[i], order, [&](uint32_t place) {
      to_ids->append(reinterpret_cast<const char*>(&ids[place]), sizeof(int64_t));
      Append(gradients.subspan(place * dimension, dimension), bf16_, to_values);
    });
  }
}

void ExchangePacker::AddPullRows(const models::ParameterView& view, size_t table,
                                 std::span<ExchangePart* const> parts) {
  const std::vector<int64_t>& ids = view.tables[table].ids;
  pulled_[table] = OrderRows(table, ids);
  for (ExchangePart* part : parts) {
    std::string* to = part->request.mutable_pull()->add_tables();
    EachPlace(*part, pulled_[table], [&](uint32_t place) {
      to->append(reinterpret_cast<const char*>(&ids[place]), sizeof(int64_t));
    });
  }
}

Status ExchangePacker::Take(std::span<ExchangePart* const> parts, models::ParameterView* view) {
  view->dense.clear();
  for (const std::vector<float>& tensor : dense_) {
    view->dense.push_back(tensor.data());
  }
  for (size_t t = 0; t < view->tables.size(); ++t) {
    view->tables[t].values.resize(view->tables[t].ids.size() * network_.tables()[t].dimension);
  }
  for (const ExchangePart* part : parts) {
    RETURN_IF_ERROR(TakeDense(*part));
    for (size_t t = 0; t < view->tables.size(); ++t) {
      RETURN_IF_ERROR(TakeRows(*part, t, &view->tables[t].values));
    }
  }
  return Status();
}

Status ExchangePacker::TakeDense(const ExchangePart& part) {
  std::vector<int64_t> versions, known;
  RETURN_IF_ERROR(Unpack(part.reply.versions(), &versions));
  RETURN_IF_ERROR(Unpack(part.request.pull().known(), &known));
  const auto changed = [&](size_t i) { return versions[i] != known[i]; };
  size_t numbers = 0;
  for (size_t i = 0; i < std::min(versions.size(), part.partitions.size()); ++i) {
    numbers += changed(i) ? layout_.dense_size(part.partitions[i]) : 0;
  }
  if (versions.size() != part.partitions.size() ||
      part.reply.dense().size() != BytesOf(numbers, bf16_)) {
    return Internal(fmt::format("{} answers for other partitions than were asked", part.server));
  }
  const char* from = part.reply.dense().data();
  for (size_t i = 0; i < versions.size(); ++i) {
    const uint32_t partition = part.partitions[i];
    versions_[partition] = versions[i];
    current_[partition] = 1;
    for (const PartitionLayout::Chunk& chunk : layout_.chunks(partition)) {
      if (changed(i)) {
        from =
            Copy(from, bf16_, std::span(dense_[chunk.tensor]).subspan(chunk.begin, chunk.size()));
      }
    }
  }
  return Status();
}

Status ExchangePacker::TakeRows(const ExchangePart& part, size_t table,
                                std::vector<float>* values) const {
  const size_t dimension = network_.tables()[table].dimension;
  size_t count = 0;
  EachPlace(part, pulled_[table], [&](uint32_t) { ++count; });
  if (static_cast<size_t>(part.reply.tables_size()) <= table ||
      part.reply.tables(static_cast<int>(table)).size() != BytesOf(count * dimension, bf16_)) {
    return Internal(fmt::format("{} answers with other rows than were asked for", part.server));
  }
  const char* from = part.reply.tables(static_cast<int>(table)).data();
  EachPlace(part, pulled_[table], [&](uint32_t place) {
    from = Copy(from, bf16_, std::span(*values).subspan(place * dimension, dimension));
  });
  return Status();
}

}  // namespace sluice::elastic
