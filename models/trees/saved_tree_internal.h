#pragma once

#include <fmt/core.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/trees/ubjson_reader_internal.h"

namespace sluice::models {

// The arrays of one tree, as views into the bytes of a saved model, big-endian.
struct SavedTree {
  std::string_view base_weights, loss_changes, split_conditions, sum_hessian;
  std::string_view left_children, right_children, parents, split_indices;
  std::string_view default_left, split_type;
  std::string_view categories, category_nodes, category_segments, category_sizes;
  int64_t id = -1;
  int64_t nodes = -1;
  int64_t deleted = -1;

  int32_t Left(int32_t node) const { return At(left_children, node); }
  int32_t Right(int32_t node) const { return At(right_children, node); }
  int32_t Parent(int32_t node) const { return At(parents, node); }
  uint32_t Split(int32_t node) const { return static_cast<uint32_t>(At(split_indices, node)); }
  bool DefaultLeft(int32_t node) const { return default_left[static_cast<size_t>(node)] != 0; }
  float Condition(int32_t node) const { return std::bit_cast<float>(At(split_conditions, node)); }

 private:
  static int32_t At(std::string_view array, int32_t node) {
    return UbjsonReader::Load<int32_t>(array, static_cast<size_t>(node));
  }
};

// Whether libxgboost can walk a tree without leaving its arrays, whatever the bytes hold. Keeps its
// memory from one tree to the next. Not thread-safe.
class SavedTreeCheck {
 public:
  // `columns`: of the rows that the tree splits.
  explicit SavedTreeCheck(size_t columns) : columns_(columns) {}
  // The first fault, in words for a message; "": none.
  std::string FindFault(const SavedTree& tree);

 private:
  void CheckArrays(const SavedTree& tree);
  void CheckCategories(const SavedTree& tree);
  void CheckNodes(const SavedTree& tree);
  void CheckNode(const SavedTree& tree, int32_t node);
  bool ok() const { return fault_.empty(); }
  // Each node is checked several times: what a fault would say is put into words only for one.
  template <typename... Named>
  void Require(bool holds, fmt::format_string<const Named&...> what, const Named&... named) {
    if (!holds && ok()) {
      fault_ = fmt::format(what, named...);
    }
  }

  size_t columns_;
  std::string fault_;
  std::vector<std::pair<int32_t, int32_t>> to_visit_;  // node and its depth
  std::vector<bool> visited_;
};

}  // namespace sluice::models
