#include "elastic/worker/fixed_parameters.h"

#include <algorithm>
#include <utility>

namespace sluice::elastic {
namespace {

Status Fixed() {
  return Internal("these parameters are not trained any more");
}

}  // namespace

Status FixedParameters::Pull(const BatchIdentity&, Purpose, models::ParameterView* view) {
  if (fetch_) {
    ASSIGN_OR_RETURN(weights_, std::exchange(fetch_, {})());
    RETURN_IF_ERROR(models::CheckShape(weights_, network_));
  }
  view->dense.clear();
  for (const std::vector<float>& tensor : weights_.dense) {
    view->dense.push_back(tensor.data());
  }
  for (size_t t = 0; t < view->tables.size(); ++t) {
    models::RowSet& rows = view->tables[t];
    const models::NetworkWeights::Table& table = weights_.tables[t];
    const size_t dimension = network_.tables()[t].dimension;
    rows.values.assign(rows.ids.size() * dimension, 0);
    for (size_t i = 0; i < rows.ids.size(); ++i) {
      const auto found = std::lower_bound(table.ids.begin(), table.ids.end(), rows.ids[i]);
      if (found != table.ids.end() && *found == rows.ids[i]) {
        const auto row = static_cast<size_t>(found - table.ids.begin());
        std::copy_n(table.values.data() + row * dimension, dimension,
                    rows.values.data() + i * dimension);
      }
    }
  }
  return Status();
}

Status FixedParameters::Push(const BatchIdentity&, double, const models::ParameterView&,
                             const models::Gradient&) {
  return Fixed();
}

Status FixedParameters::PushEnd(const BatchIdentity&) {
  return Fixed();
}

Result<BatchIndex> FixedParameters::AppliedBatches(Epoch, ShardId) {
  return Fixed();
}

}  // namespace sluice::elastic
