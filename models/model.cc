#include "models/model.h"

#include <utility>

#include "models/families/family_layers.h"
#include "models/graph/graph_network.h"
#include "models/model.pb.h"
#include "models/networks/loss.h"

namespace sluice::models {

Result<std::unique_ptr<Network>> Network::Make(const ModelSpec& spec) {
  ASSIGN_OR_RETURN(Loss loss, Loss::Make(spec));
  ASSIGN_OR_RETURN(auto transform,
                   FeatureTransform::Make(spec.features(), FeatureTransform::Target::kNetwork));
  if (spec.has_graph()) {
    return MakeGraphNetwork(spec, spec.graph(), /*limits=*/true, std::move(transform),
                            std::move(loss));
  }
  ASSIGN_OR_RETURN(const NetworkGraph graph,
                   families::GraphOfLayers(spec, *transform, loss.outputs()));
  return MakeGraphNetwork(spec, graph, /*limits=*/false, std::move(transform), std::move(loss));
}

bool HasOwnLoss(const ModelSpec& spec) {
  return !spec.graph().loss().empty();
}

}  // namespace sluice::models
