#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

#include "base/status.h"

namespace sluice::models {

// Sees to it that the rows of each query of a ranking stand together: one that comes back after
// another one would count as two.
class QueryOrder {
 public:
  // `column` is the one that says which query, for the error.
  explicit QueryOrder(std::string column);
  // Whether the next row begins a query. InvalidArgument: that query's rows ended before.
  Result<bool> Begins(int64_t query);

 private:
  const std::string column_;
  std::unordered_set<int64_t> seen_;
  std::optional<int64_t> last_;
};

}  // namespace sluice::models
