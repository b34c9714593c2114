#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "elastic/collective/all_reduce.h"

// The messages between members of a world in a step, and how they are read. Included by
// all_reduce.cc.
namespace sluice::elastic {

inline constexpr uint32_t kScatter = 0x5343;
inline constexpr uint32_t kGather = 0x4741;
// Of a table in one step: more than any batch touches, and few enough that their bytes can be
// counted.
inline constexpr uint64_t kMaxRows = uint64_t{1} << 32;
// A list of rows initially has room for this many.
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

// Reads a peer's message into a list of buffers, one after the other. A peer's counts are not
// trusted: a buffer is allocated when it is its turn, and a list of rows grows as the rows arrive.
struct AllReduce::Inbound {
  using Room = Result<std::span<std::byte>>;

  Header expected;
  Header header;
  size_t slice = 0;  // dense numbers of each node
  std::span<const uint32_t> dimensions;
  std::vector<LaneNote> notes;
  std::vector<uint32_t> begins;  // of the nodes
  std::vector<uint64_t> counts;  // of rows: node, table
  std::vector<std::vector<float>> dense;
  std::vector<std::vector<RowGradients>> rows;  // node, table
  // Destination of a gather's sums: the dense ones are read directly into place.
  std::span<float> place;

  void Start(const Header& expect, size_t numbers, std::span<float> straight) {
    expected = expect;
    slice = numbers;
    place = straight;
    buffers_.clear();
    next_ = 0;
    Once([this] { return std::as_writable_bytes(std::span(&header, 1)); });
    Once([this] { return AddFixed(); });
  }
  // Room for the next bytes; empty: the message is complete.
  Room Next() {
    for (; next_ < buffers_.size(); ++next_) {
      ASSIGN_OR_RETURN(const std::span<std::byte> room, buffers_[next_]());
      if (!room.empty()) {
        return room;
      }
    }
    return std::span<std::byte>();
  }

 private:
  // Called until it has no room left. It may append buffers.
  using Buffer = std::function<Room()>;

  // Memory that is filled in one piece.
  template <typename Memory>
  void Once(Memory memory) {
    buffers_.push_back([memory, given = false]() mutable -> Room {
      return std::exchange(given, true) ? Room(std::span<std::byte>()) : Room(memory());
    });
  }
  template <typename Number>
  void Whole(std::vector<Number>* numbers) {
    Once([numbers] { return std::as_writable_bytes(std::span(*numbers)); });
  }
  // A list of `count` times `width` numbers.
  template <typename Number>
  void Growing(std::vector<Number>* list, uint64_t count, uint64_t width) {
    buffers_.push_back([list, count, width, begun = false]() mutable -> Room {
      if (!std::exchange(begun, true)) {
        list->clear();
      }
      return More(list, count, width);
    });
  }

  // The header is complete: adds buffers for the amounts that it states.
  Room AddFixed() {
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
    Whole(&notes);
    Whole(&begins);
    Whole(&counts);
    for (std::vector<float>& node : dense) {
      Once([this, &node] {
        if (place.empty()) {
          node.resize(slice);
        }
        return std::as_writable_bytes(place.empty() ? std::span(node) : place);
      });
    }
    Once([this] { return AddRows(); });
    return std::span<std::byte>();
  }
  Room AddRows() {
    for (size_t node = 0; node < rows.size(); ++node) {
      rows[node].resize(dimensions.size());
      for (size_t table = 0; table < dimensions.size(); ++table) {
        const uint64_t count = counts[node * dimensions.size() + table];
        if (count > kMaxRows) {
          return Unavailable(fmt::format("a worker sends {} rows of a table", count));
        }
        Growing(&rows[node][table].ids, count, 1);
        Growing(&rows[node][table].values, count, dimensions[table]);
      }
    }
    return std::span<std::byte>();
  }
  // Room for the next numbers: the remaining room, or as much as has arrived so far.
  template <typename Number>
  static std::span<std::byte> More(std::vector<Number>* list, uint64_t count, uint64_t width) {
    const uint64_t have = list->size();
    const uint64_t room = std::max<uint64_t>({kRowsAtOnce * width, have, list->capacity() - have});
    list->resize(have + std::min(room, count * width - have));
    return std::as_writable_bytes(std::span(*list).subspan(have));
  }

  std::deque<Buffer> buffers_;  // a buffer that is called may append others
  size_t next_ = 0;
};

}  // namespace sluice::elastic
