#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "elastic/collective/all_reduce.h"

// What members of a world send each other in a step, and how it is read. Included by all_reduce.cc.
namespace sluice::elastic {

inline constexpr uint32_t kScatter = 0x5343;
inline constexpr uint32_t kGather = 0x4741;
// Of a table in one step: more than any batch touches, few enough to be counted in bytes.
inline constexpr uint64_t kMostRows = uint64_t{1} << 32;
// A list of rows has room for so many before the first has come.
inline constexpr uint64_t kRowsAtOnce = uint64_t{1} << 14;

struct AllReduce::Header {
  int64_t world = 0;
  int64_t step = 0;
  uint32_t phase = 0;
  uint32_t lanes = 0;
  uint32_t notes = 0;
  uint32_t nodes = 0;  // that have a sum
  uint32_t reconvene = 0;
  uint32_t tables = 0;
};

// Reads a peer's message piece by piece, each where it belongs. A peer's numbers are not believed:
// a piece has room when it is its turn, and a list of rows grows as they come.
struct AllReduce::Inbound {
  Header expected;
  Header header;
  size_t slice = 0;  // dense numbers of each node
  std::span<const uint32_t> dimensions;
  std::vector<LaneNote> notes;
  std::vector<uint32_t> begins;  // of the nodes
  std::vector<uint64_t> counts;  // of rows: node, table
  std::vector<std::vector<float>> dense;
  std::vector<std::vector<RowGradients>> rows;  // node, table
  // Where the sums of a gather go: the dense ones straight to their place.
  std::span<float> place;

  void Start(const Header& expect, size_t numbers, std::span<float> straight) {
    expected = expect;
    slice = numbers;
    place = straight;
    step_ = Step::kHeader;
  }
  Result<std::span<std::byte>> Next() {
    for (;;) {
      ASSIGN_OR_RETURN(const std::span<std::byte> target, Piece());
      if (!target.empty() || step_ == Step::kEnd) {
        return target;
      }
    }
  }

 private:
  enum class Step { kHeader, kNotes, kBegins, kCounts, kDense, kIds, kValues, kEnd };

  template <typename T>
  static std::span<std::byte> Writable(std::vector<T>* values) {
    return std::as_writable_bytes(std::span(*values));
  }
  Result<std::span<std::byte>> Piece() {
    switch (step_) {
      case Step::kHeader:
        step_ = Step::kNotes;
        return std::as_writable_bytes(std::span(&header, 1));
      case Step::kNotes:
        RETURN_IF_ERROR(Prepare());
        step_ = Step::kBegins;
        return Writable(&notes);
      case Step::kBegins:
        step_ = Step::kCounts;
        return Writable(&begins);
      case Step::kCounts:
        step_ = Step::kDense;
        node_ = 0;
        return Writable(&counts);
      case Step::kDense:
        return NextDense();
      case Step::kIds:
        return More(&Table().ids, Count(), 1, Step::kValues);
      case Step::kValues:
        return NextValues();
      case Step::kEnd:
        break;
    }
    return std::span<std::byte>();
  }
  std::span<std::byte> NextDense() {
    if (node_ == header.nodes) {
      node_ = 0;
      table_ = 0;
      step_ = header.nodes > 0 && !dimensions.empty() ? Step::kIds : Step::kEnd;
      if (step_ == Step::kIds) {
        Table().ids.clear();
      }
      return {};
    }
    std::vector<float>& node = dense[node_++];
    if (!place.empty()) {
      return std::as_writable_bytes(place);
    }
    node.resize(slice);
    return Writable(&node);
  }
  Result<std::span<std::byte>> NextValues() {
    ASSIGN_OR_RETURN(const std::span<std::byte> more,
                     More(&Table().values, Count(), dimensions[table_], Step::kIds));
    if (step_ == Step::kIds) {  // that was all of this table
      table_ = (table_ + 1) % dimensions.size();
      node_ += table_ == 0 ? 1 : 0;
      if (node_ == header.nodes) {
        step_ = Step::kEnd;
      } else {
        Table().ids.clear();
      }
    }
    return more;
  }
  // Room for the next numbers of a list of `count` times `width`; nothing: it is complete.
  template <typename Number>
  Result<std::span<std::byte>> More(std::vector<Number>* list, uint64_t count, uint64_t width,
                                    Step then) {
    if (count > kMostRows) {
      return Unavailable(fmt::format("a worker sends {} rows of a table", count));
    }
    const uint64_t have = list->size();
    if (have == count * width) {
      step_ = then;
      if (then == Step::kValues) {
        Table().values.clear();
      }
      return std::span<std::byte>();
    }
    // What has room already, or as much again as has come.
    const uint64_t room = std::max<uint64_t>({kRowsAtOnce * width, have, list->capacity() - have});
    list->resize(have + std::min(room, count * width - have));
    return std::as_writable_bytes(std::span(*list).subspan(have));
  }
  RowGradients& Table() { return rows[node_][table_]; }
  uint64_t Count() const { return counts[node_ * dimensions.size() + table_]; }

  Status Prepare() {
    if (header.world != expected.world || header.step != expected.step ||
        header.phase != expected.phase || header.lanes != expected.lanes ||
        header.tables != expected.tables || header.notes > header.lanes ||
        header.nodes > header.lanes || (expected.phase == kGather && header.nodes != 1)) {
      return Unavailable(fmt::format("a worker is at step {} of world {}, this one at {} of {}",
                                     header.step, header.world, expected.step, expected.world));
    }
    notes.resize(header.notes);
    begins.resize(header.nodes);
    counts.resize(header.nodes * dimensions.size());
    dense.resize(header.nodes);
    rows.resize(header.nodes);
    for (std::vector<RowGradients>& node : rows) {
      node.resize(dimensions.size());
    }
    return Status();
  }

  Step step_ = Step::kHeader;
  size_t node_ = 0;  // of what comes next
  size_t table_ = 0;
};

}  // namespace sluice::elastic
