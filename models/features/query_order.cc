#include "models/features/query_order.h"

#include <fmt/core.h>

#include <utility>

namespace sluice::models {

QueryOrder::QueryOrder(std::string column) : column_(std::move(column)) {}

Result<bool> QueryOrder::Begins(int64_t query) {
  if (query == last_) {
    return false;
  }
  if (!seen_.insert(query).second) {
    return InvalidArgument(fmt::format("the rows of query {} do not stand together in column '{}'",
                                       query, column_))
        .Hint(fmt::format("ORDER BY {} in the select", column_));
  }
  last_ = query;
  return true;
}

}  // namespace sluice::models
