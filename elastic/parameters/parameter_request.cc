#include "elastic/parameters/parameter_request.h"

#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <string>

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

Status CheckIds(const ParameterRules& rules, size_t table, std::span<const int64_t> ids) {
  const models::EmbeddingTable& description = rules.tables[table];
  for (int64_t id : ids) {
    if (description.rows > 0 && (id < 0 || id >= description.rows)) {
      return InvalidArgument(fmt::format("table '{}' has no row {}: it has {} rows",
                                         description.name, id, description.rows));
    }
  }
  return Status();
}

Status CutRows(const ParameterRules& rules, std::span<const uint32_t> partitions, size_t table,
               std::span<const int64_t> ids, RequestCuts* cuts) {
  cuts->rows.resize(rules.tables.size());
  std::vector<size_t>& rows = cuts->rows[table];
  rows.assign(partitions.size() + 1, ids.size());
  rows[0] = 0;
  size_t row = 0;
  if (rules.layout.partitions() > 1) {
    for (size_t i = 0; i < partitions.size(); ++i) {
      rows[i] = row;
      while (row < ids.size() && rules.layout.PartitionOf(table, ids[row]) == partitions[i]) {
        ++row;
      }
    }
    if (row != ids.size()) {
      return InvalidArgument(fmt::format("row {} of table '{}' is not in its partition's place",
                                         ids[row], rules.tables[table].name));
    }
  }
  return CheckIds(rules, table, ids);
}

Status CheckPush(const ParameterRules& rules, const PushRequest& request, bool trusted) {
  size_t chunk = 0;
  for (uint32_t partition : request.partitions) {
    for (const PartitionLayout::Chunk& expected : rules.layout.chunks(partition)) {
      const std::string& name = rules.tensors[expected.tensor].name;
      const size_t size = chunk < request.dense.size() ? request.dense[chunk].size() : 0;
      if (chunk >= request.dense.size() || size != expected.size()) {
        return InvalidArgument(fmt::format("the gradient of '{}' has {} elements; expected {}",
                                           name, size, expected.size()));
      }
      if (!trusted && !AllFinite(request.dense[chunk])) {
        return NotFinite(name, request.batch);
      }
      ++chunk;
    }
  }
  if (chunk != request.dense.size() || request.tables.size() != rules.tables.size() ||
      request.versions.size() != request.partitions.size()) {
    return InvalidArgument(
        fmt::format("a push has {} chunks, {} tables and {} versions; the server has {}, {} and {}",
                    request.dense.size(), request.tables.size(), request.versions.size(), chunk,
                    rules.tables.size(), request.partitions.size()));
  }
  for (int64_t version : request.versions) {
    if (version < 0) {
      return InvalidArgument(fmt::format("a gradient of version {} of a partition", version));
    }
  }
  if (!std::isfinite(request.weight)) {
    return InvalidArgument("a gradient whose weight is not a number");
  }
  for (size_t t = 0; t < rules.tables.size(); ++t) {
    const RowSpan& rows = request.tables[t];
    if (rows.values.size() != rows.ids.size() * rules.dimensions[t]) {
      return InvalidArgument(fmt::format("the gradient of table '{}' has {} numbers for {} rows",
                                         rules.tables[t].name, rows.values.size(),
                                         rows.ids.size()));
    }
    if (!trusted && !AllFinite(rows.values)) {
      return NotFinite(rules.tables[t].name, request.batch);
    }
  }
  return Status();
}

}  // namespace

Result<RequestCuts> CutPush(const ParameterRules& rules, const PushRequest& request, bool trusted) {
  RequestCuts cuts;
  if (request.end && !rules.synchronous) {
    return InvalidArgument("only a lane has an end");
  }
  if (request.end) {
    return cuts;
  }
  RETURN_IF_ERROR(CheckPush(rules, request, trusted));
  cuts.dense.push_back(0);
  for (uint32_t partition : request.partitions) {
    cuts.dense.push_back(cuts.dense.back() + rules.layout.chunks(partition).size());
  }
  for (size_t t = 0; t < request.tables.size(); ++t) {
    RETURN_IF_ERROR(CutRows(rules, request.partitions, t, request.tables[t].ids, &cuts));
  }
  return cuts;
}

Result<RequestCuts> CutPull(const ParameterRules& rules, const PullRequest& request) {
  if (request.tables.size() != rules.tables.size()) {
    return InvalidArgument(fmt::format("a pull names {} tables; the model has {}",
                                       request.tables.size(), rules.tables.size()));
  }
  if (!request.known.empty() && request.known.size() != request.partitions.size()) {
    return InvalidArgument(fmt::format("a pull knows {} versions of {} partitions",
                                       request.known.size(), request.partitions.size()));
  }
  RequestCuts cuts;
  for (size_t t = 0; t < rules.tables.size(); ++t) {
    RETURN_IF_ERROR(CutRows(rules, request.partitions, t, request.tables[t], &cuts));
  }
  return cuts;
}

}  // namespace sluice::elastic
