#pragma once

#include <memory>
#include <string_view>

#include "executor/scoring/scorer.h"

namespace sluice::executor {

// A stored blend: the weighted sum of its members' scores. Neither argument is trusted.
Result<std::unique_ptr<Scorer>> MakeBlendScorer(const models::ModelSpec& spec,
                                                std::string_view weights);

}  // namespace sluice::executor
