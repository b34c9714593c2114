#include "models/model.h"

#include <utility>

#include "models/graph/graph_network.h"
#include "models/model.pb.h"
#include "models/networks/loss.h"
#include "models/networks/network_of_parts.h"

namespace sluice::models {

Result<std::unique_ptr<Network>> Network::Make(const ModelSpec& spec) {
  ASSIGN_OR_RETURN(Loss loss, Loss::Make(spec));
  ASSIGN_OR_RETURN(auto transform,
                   FeatureTransform::Make(spec.features(), FeatureTransform::Target::kNetwork));
  return spec.has_graph() ? MakeGraphNetwork(spec, std::move(transform), std::move(loss))
                          : MakeNetworkOfParts(spec, std::move(transform), std::move(loss));
}

bool HasOwnLoss(const ModelSpec& spec) {
  return !spec.graph().loss().empty();
}

}  // namespace sluice::models
