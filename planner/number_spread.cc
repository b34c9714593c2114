#include "planner/number_spread.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/value.h"
#include "catalog/data_source.h"
#include "models/model.pb.h"

namespace sluice::planner {
namespace {

constexpr size_t kParts = 10;

// The finite numbers of the sample, ascending.
std::vector<double> NumbersOf(const catalog::SelectStatistics& statistics, size_t column) {
  std::vector<double> numbers;
  for (const std::vector<Value>& row : statistics.sample) {
    const Value& cell = row[column];
    double number = NAN;
    if (const auto* flag = std::get_if<bool>(&cell)) {
      number = *flag ? 1 : 0;
    } else if (const auto* integer = std::get_if<int64_t>(&cell)) {
      number = static_cast<double>(*integer);
    } else if (const auto* real = std::get_if<double>(&cell)) {
      number = *real;
    }
    if (std::isfinite(number)) {
      numbers.push_back(number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

void DescribeSpread(const catalog::SelectStatistics& statistics, size_t column,
                    models::InputColumn* input) {
  const catalog::ColumnStatistics& known = statistics.columns[column];
  if (!IsNumeric(static_cast<DataType>(input->type())) || !known.has_range) {
    return;
  }
  models::NumberSpread* spread = input->mutable_spread();
  spread->set_lowest(known.min);
  spread->set_highest(known.max);
  spread->set_mean(known.mean);
  const std::vector<double> numbers = NumbersOf(statistics, column);
  spread->set_sampled(static_cast<int64_t>(numbers.size()));
  for (size_t part = 1; part < kParts && !numbers.empty(); ++part) {
    const double bound = numbers[numbers.size() * part / kParts];
    const auto above = std::upper_bound(numbers.begin(), numbers.end(), bound);
    const bool again = spread->bounds_size() > 0 && *spread->bounds().rbegin() == bound;
    if (!again && above != numbers.end()) {
      spread->add_bounds(bound);
      spread->add_shares(static_cast<double>(above - numbers.begin()) /
                         static_cast<double>(numbers.size()));
    }
  }
}

}  // namespace sluice::planner
