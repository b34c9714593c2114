#pragma once

#include <stop_token>
#include <string_view>

#include "base/status.h"

namespace sluice::catalog {
class DataSource;
class DatasetSpec;
}  // namespace sluice::catalog
namespace sluice::plan {
class FeatureEffects;
class TrainPlan;
}  // namespace sluice::plan

namespace sluice::executor {

// How much each feature tells a newly trained network, measured on a few rows: for a linear model,
// how far its values spread the prediction, and in which direction; for others, how much the loss
// grows when its values are shuffled. Takes a small part of the training time. Skips trees, which
// report importance themselves, and models for which it would cost too much. `validation`: the rows
// of validation.select, or null.
Result<plan::FeatureEffects> FindFeatureEffects(const plan::TrainPlan& plan,
                                                catalog::DataSource& source,
                                                const catalog::DatasetSpec& dataset,
                                                const catalog::DatasetSpec* validation,
                                                std::string_view weights, int64_t rows_trained,
                                                std::stop_token stop);

}  // namespace sluice::executor
