#pragma once

#include <cstdint>
#include <vector>

namespace sluice::models::histogram {

// A place where the rows of a node part.
struct SplitRule {
  uint32_t column = 0;
  uint32_t bin = 0;  // bins up to this go left
  bool missing_left = false;
  // Of categories, ascending: all others go left, and missing ones, too.
  std::vector<uint32_t> right_bins = {};

  // For each bin of a column of `bins`, and the missing one: whether it goes left.
  std::vector<uint8_t> Sides(uint32_t bins) const {
    if (!right_bins.empty()) {
      std::vector<uint8_t> left(bins + 1, 1);
      for (const uint32_t b : right_bins) {
        left[b] = 0;
      }
      return left;
    }
    std::vector<uint8_t> left(bins + 1, 0);
    for (uint32_t b = 0; b <= bin && b < bins; ++b) {
      left[b] = 1;
    }
    left[bins] = missing_left ? 1 : 0;
    return left;
  }
};

// Nodes in the order in which they were made, the root first; a right child follows its left one.
struct Tree {
  struct Node {
    int32_t parent = -1;
    int32_t left = -1;  // -1: a leaf
    SplitRule split;
    float gain = 0;
    float hessian = 0;
    float weight = 0;  // what it would add as a leaf, before eta
    float value = 0;   // of a leaf: what it adds
  };
  std::vector<Node> nodes;
};

}  // namespace sluice::models::histogram
