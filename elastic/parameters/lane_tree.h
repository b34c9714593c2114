#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "elastic/ids.h"

namespace sluice::elastic {

// The fixed binary tree over the lanes of a step. Leaves are lanes; at each level a node is joined
// with its right neighbour. A lane that has ended is an empty leaf: its neighbour's sum moves up
// unchanged. So a sum has the same bits whichever process adds each part, and in whatever order the
// parts arrive.

// Adds the slots along the tree; the sum ends in slots[0]. `merge(Slot* left, Slot& right)`.
// A slot may also hold the sum of a complete node, at the node's first lane, when the node's other
// lanes are empty.
template <typename Slot, typename Merge>
void AddAlongTree(std::span<std::optional<Slot>> slots, const Merge& merge) {
  for (size_t stride = 1; stride < slots.size(); stride *= 2) {
    for (size_t left = 0; left + stride < slots.size(); left += 2 * stride) {
      std::optional<Slot>& right = slots[left + stride];
      if (!right.has_value()) {
        continue;
      }
      if (slots[left].has_value()) {
        merge(&*slots[left], *right);
        right.reset();
      } else {
        slots[left] = std::exchange(right, std::nullopt);
      }
    }
  }
}

// Adds consecutive lanes as they arrive and keeps as few sums as the tree allows: those of the
// largest complete nodes, at most two for each level.
template <typename Sum>
class LaneSums {
 public:
  struct Node {
    uint32_t begin = 0;
    uint32_t span = 1;
    std::optional<Sum> sum;
  };

  void Start(uint32_t lanes) {
    lanes_ = lanes;
    nodes_.clear();
  }
  // Lanes arrive in ascending order without gaps; an ended lane is nullopt. `merge` as above.
  template <typename Merge>
  void Add(uint32_t lane, std::optional<Sum> sum, const Merge& merge) {
    Push({lane, 1, std::move(sum)}, merge);
    // After the last lane there are only empty leaves, so the nodes that they complete are
    // complete.
    for (uint32_t empty = lane + 1; empty >= lanes_ && empty < std::bit_ceil(lanes_); ++empty) {
      Push({empty, 1, std::nullopt}, merge);
    }
  }
  std::vector<Node>& nodes() { return nodes_; }

 private:
  template <typename Merge>
  void Push(Node node, const Merge& merge) {
    nodes_.push_back(std::move(node));
    while (nodes_.size() > 1) {
      Node& right = nodes_.back();
      Node& left = nodes_[nodes_.size() - 2];
      if (left.span != right.span || left.begin % (2 * left.span) != 0) {
        return;
      }
      if (right.sum.has_value() && left.sum.has_value()) {
        merge(&*left.sum, *right.sum);
      } else if (right.sum.has_value()) {
        left.sum = std::move(right.sum);
      }
      left.span *= 2;
      nodes_.pop_back();
    }
  }

  uint32_t lanes_ = 0;
  std::vector<Node> nodes_;
};

// The lanes of a step that worker `rank` of `size` computes: an equal, consecutive share.
inline std::pair<uint32_t, uint32_t> LanesOf(uint32_t lanes, Rank rank, size_t size) {
  return {static_cast<uint32_t>(lanes * rank.index() / size),
          static_cast<uint32_t>(lanes * (rank.index() + 1) / size)};
}

}  // namespace sluice::elastic
