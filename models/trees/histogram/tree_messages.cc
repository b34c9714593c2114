#include "models/trees/histogram/tree_messages_internal.h"

#include <algorithm>

namespace sluice::models::histogram {
namespace {

bool IsRule(const GrownSplit& split, const CutPoints& cuts) {
  if (split.column() >= cuts.columns()) {
    return false;
  }
  const uint32_t bins = cuts.bins(split.column());
  return split.right_bins().empty() ||
         std::all_of(split.right_bins().begin(), split.right_bins().end(),
                     [bins](uint32_t bin) { return bin < bins; });
}

}  // namespace

LargestDerivatives ToProto(const GradientRange& range) {
  LargestDerivatives proto;
  proto.set_gradient(range.gradient);
  proto.set_hessian(range.hessian);
  return proto;
}

GradientRange FromProto(const LargestDerivatives& proto) {
  return {proto.gradient(), proto.hessian()};
}

void AddSplits(std::span<const RowShare::NodeSplit> splits, GrownTree* tree) {
  for (const RowShare::NodeSplit& split : splits) {
    GrownSplit* one = tree->add_splits();
    one->set_node(split.node);
    one->set_left(split.left);
    one->set_column(split.rule.column);
    one->set_bin(split.rule.bin);
    one->set_missing_left(split.rule.missing_left);
    one->mutable_right_bins()->Add(split.rule.right_bins.begin(), split.rule.right_bins.end());
    one->set_last(split.last);
  }
}

RowShare::NodeSplit FromProto(const GrownSplit& proto) {
  RowShare::NodeSplit split{.node = proto.node(), .left = proto.left(), .rule = {}};
  split.rule.column = proto.column();
  split.rule.bin = proto.bin();
  split.rule.missing_left = proto.missing_left();
  split.rule.right_bins.assign(proto.right_bins().begin(), proto.right_bins().end());
  split.last = proto.last();
  return split;
}

void AddNodes(const Tree& tree, GrownTree* proto) {
  for (const Tree::Node& node : tree.nodes) {
    proto->add_values(node.value);
    proto->add_weights(node.weight);
    proto->add_hessians(node.hessian);
    proto->add_gains(node.gain);
  }
}

Status CheckTree(const GrownTree& proto, const CutPoints& cuts) {
  const Status damaged = InvalidArgument("a tree that is damaged");
  int32_t nodes = 1;
  std::vector<bool> split(static_cast<size_t>(2 * proto.splits_size() + 1), false);
  for (const GrownSplit& one : proto.splits()) {  // each makes the next two nodes
    if (one.node() < 0 || one.node() >= nodes || one.left() != nodes || !IsRule(one, cuts) ||
        split[static_cast<size_t>(one.node())]) {
      return damaged;
    }
    split[static_cast<size_t>(one.node())] = true;
    nodes += 2;
  }
  const bool open = proto.values().empty();
  const bool complete = proto.values_size() == nodes && proto.weights_size() == nodes &&
                        proto.hessians_size() == nodes && proto.gains_size() == nodes;
  return open || complete ? OkStatus() : damaged;
}

Tree FromProto(const GrownTree& proto) {
  Tree tree;
  tree.nodes.resize(static_cast<size_t>(proto.values_size()));
  for (size_t i = 0; i < tree.nodes.size(); ++i) {
    const auto at = static_cast<int>(i);
    Tree::Node& node = tree.nodes[i];
    node.value = proto.values(at);
    node.weight = proto.weights(at);
    node.hessian = proto.hessians(at);
    node.gain = proto.gains(at);
  }
  for (const GrownSplit& split : proto.splits()) {
    Tree::Node& node = tree.nodes[static_cast<size_t>(split.node())];
    node.left = split.left();
    node.split = FromProto(split).rule;
    for (const int32_t child : {split.left(), split.left() + 1}) {
      tree.nodes[static_cast<size_t>(child)].parent = split.node();
    }
  }
  return tree;
}

}  // namespace sluice::models::histogram
