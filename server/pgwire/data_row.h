#pragma once

#include <string>
#include <vector>

#include "base/row_batch.h"
#include "server/pgwire/messages.h"

namespace sluice::server::pgwire {

struct WireType {
  uint32_t oid = 25;
  int16_t bytes = -1;
};
WireType WireTypeOf(const ColumnInfo& column);

// One row of `batch` as a DataRow message, each cell in its column's format.
Status AppendDataRow(std::string& out, const RowBatch& batch, size_t row,
                     const std::vector<WireColumn>& columns);

}  // namespace sluice::server::pgwire
