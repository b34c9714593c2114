#include "models/trees/histogram/reading.h"

#include <fmt/core.h>

#include <cmath>
#include <string_view>

#include "models/features/cell_format.h"
#include "models/trees/histogram/learner.h"

namespace sluice::models::histogram {

Status CheckLabels(std::span<const float> labels, const Objective& objective,
                   const BoostingParameters& parameters) {
  for (const float label : labels) {
    const std::string_view refusal =
        std::isfinite(label) ? objective.Refusal(label) : "must be within the range of floats";
    if (!refusal.empty()) {
      return InvalidArgument(fmt::format("objective {}: label '{}' {}, and one is {}",
                                         parameters.objective, parameters.label, refusal,
                                         FormatDouble(static_cast<double>(label))));
    }
  }
  return OkStatus();
}

void CountValues(const RowMatrix& rows, bool sparse, Threads* threads,
                 std::vector<ValueCounts>* counts) {
  if (sparse) {
    for (size_t i = 0; i < rows.numbers(); ++i) {
      (*counts)[rows.columns()[i]].Add(rows.values()[i]);
    }
    return;
  }
  const size_t columns = counts->size();
  threads->Run(columns, [&](size_t column, size_t) {
    for (size_t i = column; i < rows.numbers(); i += columns) {
      if (!std::isnan(rows.values()[i])) {
        (*counts)[column].Add(rows.values()[i]);
      }
    }
  });
}

Result<std::unique_ptr<RowShare>> ReadShare(RowPieces* pieces, const ShareOptions& options) {
  auto share = std::make_unique<RowShare>(options.cuts, options.layout->sparse(), options.objective,
                                          options.threads, options.first_row);
  share->Reserve(options.rows);
  std::vector<float> margins;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, pieces->Next(RowPieces::Left::kNothing));
    if (!more) {
      return share;
    }
    if (options.base != nullptr) {
      RETURN_IF_ERROR(options.base->margins(pieces->matrix(), &margins));
    }
    share->Append(pieces->matrix(), pieces->labels(), pieces->weights(), margins);
  }
}

}  // namespace sluice::models::histogram
