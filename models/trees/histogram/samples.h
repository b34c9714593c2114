#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/trees/histogram/rules.h"

// Which rows and columns a tree sees. Each choice is a function of (seed, tree, name), never of
// what was chosen before.
namespace sluice::models::histogram {

class RowSample {
 public:
  RowSample(const TreeRules& rules, uint64_t tree);
  bool all() const { return all_; }
  // `row`: its name, the same however rows are spread.
  bool Has(uint64_t row) const;

 private:
  const bool all_;
  const uint64_t key_;
  const uint64_t below_;
};

class ColumnSample {
 public:
  // Of `columns` columns.
  ColumnSample(const TreeRules& rules, uint64_t tree, size_t columns);
  // Ascending; at least one.
  std::vector<uint32_t> OfNode(int depth, uint64_t node) const;

 private:
  const double by_level_, by_node_;
  const uint64_t key_;
  std::vector<uint32_t> tree_;
};

}  // namespace sluice::models::histogram
