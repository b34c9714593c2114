#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

#include "base/status.h"

namespace sluice::models {

// Checks that the rows of each query in a ranking are adjacent: a query that reappears after
// another one would count as two.
class QueryOrder {
 public:
  // `column` names the query column in the error.
  explicit QueryOrder(std::string column);
  // Whether the next row begins a query. InvalidArgument: that query's rows had already ended.
  Result<bool> Begins(int64_t query);

 private:
  const std::string column_;
  std::unordered_set<int64_t> seen_;
  std::optional<int64_t> last_;
};

}  // namespace sluice::models
