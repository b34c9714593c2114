#pragma once

#include <cstddef>
#include <string>

#include "base/status.h"
#include "models/imports/imported_network_internal.h"

namespace sluice::models {

// A loss of the user's own: a graph of the values `output` and `label`, [rows].
struct OwnLoss {
  ImportedNetwork network;
  size_t width = 1;  // numbers of the output per row, as the loss gets them
};

// Appends the loss to a network that is bound to its features. `output`: the value that was the
// network's before FitOutput; `left`: the operator that went then. Numbers come in the label's own
// scale.
Status AttachLoss(OwnLoss loss, const std::string& output, const std::string& left,
                  const LabelPlan& label, ImportedNetwork* network);

}  // namespace sluice::models
