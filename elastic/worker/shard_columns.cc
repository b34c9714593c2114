#include "elastic/worker/shard_columns.h"

#include <array>
#include <vector>

namespace sluice::elastic {
namespace {

using Head = std::array<uint64_t, 3>;  // rows, width of the dense columns, slots

// In the order in which they are stored.
template <typename Batch, typename Visitor>
void ForEachColumn(Batch& rows, const Visitor& visit) {
  visit(rows.dense);
  visit(rows.labels);
  visit(rows.label_numbers);
  visit(rows.weights);
  visit(rows.groups);
  visit(rows.offsets);
  for (auto& slot : rows.slots) {
    visit(slot.ids);
    visit(slot.ends);
    visit(slot.weights);
  }
}

template <typename T>
std::string_view BytesOf(const T& values) {
  return {reinterpret_cast<const char*>(values.data()),
          values.size() * sizeof(typename T::value_type)};
}

template <typename T>
std::span<char> BytesIn(T& values) {
  return {reinterpret_cast<char*>(values.data()), values.size() * sizeof(typename T::value_type)};
}

Status NotABatch() {
  return Internal("the columns of a shard are not what was written");
}

}  // namespace

Result<uint64_t> WriteColumns(
    const models::FeatureBatch& rows,
    const std::function<Result<uint64_t>(std::span<const std::string_view>)>& write) {
  const Head head = {rows.rows, rows.dense_width, rows.slots.size()};
  std::vector<uint64_t> lengths;
  ForEachColumn(rows, [&](const auto& column) { lengths.push_back(column.size()); });
  std::vector<std::string_view> pieces = {BytesOf(head), BytesOf(lengths)};
  ForEachColumn(rows, [&](const auto& column) { pieces.push_back(BytesOf(column)); });
  return write(pieces);
}

Status ReadColumns(uint64_t bytes, const std::function<Status(std::span<char>)>& read,
                   models::FeatureBatch* rows) {
  constexpr size_t kColumns = 6, kColumnsOfSlot = 3;
  Head head{};
  uint64_t left = bytes;
  const auto take = [&left](uint64_t count, size_t size) {
    const bool fits = count <= left / size;
    left -= fits ? count * size : 0;
    return fits;
  };
  if (!take(head.size(), sizeof(uint64_t))) {
    return NotABatch();
  }
  RETURN_IF_ERROR(read(BytesIn(head)));
  const uint64_t slots = head[2];
  if (slots > left / (kColumnsOfSlot * sizeof(uint64_t)) ||
      !take(kColumns + kColumnsOfSlot * slots, sizeof(uint64_t))) {
    return NotABatch();
  }
  std::vector<uint64_t> lengths(kColumns + kColumnsOfSlot * slots);
  RETURN_IF_ERROR(read(BytesIn(lengths)));
  rows->Clear();
  rows->rows = head[0];
  rows->dense_width = head[1];
  rows->slots.resize(slots);
  // No length determines an allocation before all of them add up to what there is.
  size_t at = 0;
  bool fits = true;
  ForEachColumn(*rows,
                [&](const auto& column) { fits = fits && take(lengths[at++], sizeof(column[0])); });
  if (!fits || left != 0) {
    return NotABatch();
  }
  at = 0;
  Status status;
  ForEachColumn(*rows, [&](auto& column) {
    column.resize(lengths[at++]);
    if (status.ok() && !column.empty()) {
      status = read(BytesIn(column));
    }
  });
  return status;
}

}  // namespace sluice::elastic
