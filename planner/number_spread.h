#pragma once

#include <cstddef>

namespace sluice::catalog {
struct SelectStatistics;
}

namespace sluice::models {
class InputColumn;
}

namespace sluice::planner {

// Sets how the column's numbers are spread in the rows of the training, for predictions to compare
// theirs with: nothing, if it is not of numbers.
void DescribeSpread(const catalog::SelectStatistics& statistics, size_t column,
                    models::InputColumn* input);

}  // namespace sluice::planner
