#pragma once

#include <span>

#include "base/status.h"
#include "models/trees/histogram/cut_points.h"
#include "models/trees/histogram/gradient_sums.h"
#include "models/trees/histogram/row_share.h"
#include "models/trees/histogram/tree.h"
#include "models/trees/histogram/tree_pass.pb.h"

// Trees and what they are grown from, as messages.
namespace sluice::models::histogram {

LargestDerivatives ToProto(const GradientRange& range);
GradientRange FromProto(const LargestDerivatives& proto);
void AddSplits(std::span<const RowShare::NodeSplit> splits, GrownTree* tree);
RowShare::NodeSplit FromProto(const GrownSplit& proto);
// The nodes of a tree whose splits are there: it is complete.
void AddNodes(const Tree& tree, GrownTree* proto);
// InvalidArgument unless its splits, and the nodes of a complete one, are those of a tree over rows
// with these cuts.
Status CheckTree(const GrownTree& proto, const CutPoints& cuts);
// Precondition: CheckTree, and it is complete.
Tree FromProto(const GrownTree& proto);

}  // namespace sluice::models::histogram
