#include <cmath>

#include "models/trees/saved_tree_internal.h"

namespace sluice::models {
namespace {

// Training that continues from a tree recurses into it; no grown tree is as deep as this.
constexpr int32_t kDeepestTree = 1 << 14;
// As many as trees that are grown here have in a column (histogram::CutPoints).
constexpr int32_t kMostCategories = 1024;
// libxgboost's mark in the split of a node that was pruned.
constexpr uint32_t kDeletedSplit = 0x7fffffffU;

}  // namespace

std::string SavedTreeCheck::FindFault(const SavedTree& tree) {
  fault_.clear();
  CheckArrays(tree);
  if (ok()) {
    CheckCategories(tree);
  }
  if (ok()) {
    CheckNodes(tree);
  }
  return std::exchange(fault_, {});
}

void SavedTreeCheck::CheckArrays(const SavedTree& tree) {
  const auto nodes = static_cast<size_t>(tree.nodes);
  bool whole = tree.nodes > 0;
  for (const std::string_view array :
       {tree.base_weights, tree.loss_changes, tree.split_conditions, tree.sum_hessian,
        tree.left_children, tree.right_children, tree.parents, tree.split_indices}) {
    whole = whole && array.size() == nodes * sizeof(int32_t);
  }
  Require(whole && tree.default_left.size() == nodes && tree.split_type.size() == nodes,
          "its arrays do not have {} nodes", tree.nodes);
}

// libxgboost takes the next node that splits by categories from their list, and makes a bit set of
// as many bits as the largest of its categories.
void SavedTreeCheck::CheckCategories(const SavedTree& tree) {
  const size_t count = tree.category_nodes.size() / sizeof(int32_t);
  const size_t categories = tree.categories.size() / sizeof(int32_t);
  bool whole = tree.category_segments.size() == count * sizeof(int64_t) &&
               tree.category_sizes.size() == count * sizeof(int64_t);
  size_t next = 0;
  for (int64_t node = 0; whole && node < tree.nodes; ++node) {
    const char type = tree.split_type[static_cast<size_t>(node)];
    whole = type == 0 || (type == 1 && next < count &&
                          UbjsonReader::Load<int32_t>(tree.category_nodes, next) == node);
    next += type == 1 ? 1 : 0;
  }
  uint64_t begin = 0;  // of the next node's categories: they follow each other
  for (size_t i = 0; whole && i < count; ++i) {
    const auto size = UbjsonReader::Load<uint64_t>(tree.category_sizes, i);
    whole = UbjsonReader::Load<uint64_t>(tree.category_segments, i) == begin && size > 0 &&
            size <= categories - begin;
    begin += whole ? size : 0;
  }
  for (size_t i = 0; whole && i < categories; ++i) {
    const auto category = UbjsonReader::Load<int32_t>(tree.categories, i);
    whole = category >= 0 && category < kMostCategories;
  }
  Require(whole && next == count && begin == categories, "its categories do not fit its nodes");
}

void SavedTreeCheck::CheckNodes(const SavedTree& tree) {
  const auto nodes = static_cast<size_t>(tree.nodes);
  visited_.assign(nodes, false);
  to_visit_.assign(1, {0, 0});
  visited_[0] = true;
  size_t reached = 0;
  while (ok() && !to_visit_.empty()) {
    const auto [node, depth] = to_visit_.back();
    to_visit_.pop_back();
    ++reached;
    CheckNode(tree, node);
    for (const int32_t child : {tree.Left(node), tree.Right(node)}) {
      if (!ok() || tree.Left(node) < 0) {
        break;  // a leaf
      }
      const bool fresh = child > 0 && child < tree.nodes && !visited_[static_cast<size_t>(child)];
      Require(fresh && tree.Parent(child) == node && depth < kDeepestTree,
              "node {} has no child {}", node, child);
      if (fresh) {
        visited_[static_cast<size_t>(child)] = true;
        to_visit_.emplace_back(child, depth + 1);
      }
    }
  }
  for (int32_t node = 1; ok() && node < tree.nodes; ++node) {
    const bool deleted = tree.Split(node) == kDeletedSplit && tree.DefaultLeft(node);
    Require(deleted != visited_[static_cast<size_t>(node)], "node {} belongs to no other", node);
    Require(tree.Parent(node) >= 0 && tree.Parent(node) < tree.nodes, "node {} has no parent {}",
            node, tree.Parent(node));
  }
  Require(tree.deleted >= 0 && nodes - reached == static_cast<size_t>(tree.deleted),
          "it does not have as many nodes as it says");
}

void SavedTreeCheck::CheckNode(const SavedTree& tree, int32_t node) {
  if (tree.Left(node) < 0) {  // a leaf; libxgboost reads both of its children
    for (const int32_t child : {tree.Left(node), tree.Right(node)}) {
      Require(child == -1, "node {} has no child {}", node, child);
    }
    Require(std::isfinite(tree.Condition(node)), "leaf {} is not a finite number", node);
    return;
  }
  Require(tree.Split(node) < columns_, "node {} splits column {} of {}", node, tree.Split(node),
          columns_);
  Require(!std::isnan(tree.Condition(node)), "node {} splits at no number", node);
}

}  // namespace sluice::models
