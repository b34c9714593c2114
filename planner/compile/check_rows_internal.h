#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "models/features/feature_transform.h"
#include "models/model.pb.h"

// Random rows on which a compiled network is compared with its module.
namespace sluice::planner {

// Of larger tables only so many rows exist while a model is compiled: see compile_model.py.
constexpr uint32_t kRowsOfTables = 4'096;

// How the module receives a feature.
struct FeatureForPython {
  const models::Feature* feature = nullptr;
  std::string_view kind;  // "numeric", "category", "embedding"
  uint32_t width = 1;     // of the others than category
  uint32_t buckets = 0;   // of categories and embeddings
  uint32_t length = 0;    // category: ids per row; 0: one, without an axis
};
std::vector<FeatureForPython> FeaturesForPython(const models::FeaturePlan& plan);

// The k-th number of a feature's embedding of an id.
float EmbeddedNumber(std::string_view feature, uint32_t id, uint32_t k);

// Four batches of one row, four of seven.
Result<std::vector<models::FeatureBatch>> MakeCheckRows(const models::FeaturePlan& plan);

// The batches in a request: [{"rows": 7, "x": {feature: numbers}}]. `transform`: of `plan`.
std::string CheckRowsAsJson(const std::vector<models::FeatureBatch>& rows,
                            const models::FeaturePlan& plan,
                            const models::FeatureTransform& transform);

// Runs the compiled form's graph on these rows; an error if it computes something other than the
// module did.
Status CheckAgainstModule(std::string_view compiled, const models::FeaturePlan& plan, uint64_t seed,
                          const std::vector<models::FeatureBatch>& rows);

}  // namespace sluice::planner
