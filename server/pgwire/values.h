#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/row_batch.h"
#include "base/status.h"
#include "server/pgwire/column_types.h"

// The cells of a result as DataRow has them. Pure; thread-safe.
namespace sluice::server::pgwire {

// 0A000, with what would be right: the column is asked for in binary, and its binary form is not
// known here.
Status CheckBinaryForm(const ColumnType& type, std::string_view column);

// Appends one field: its length and its value, in text or binary. The batch is one of a statement's
// rows as they are shown (a date, a numeric or an array is the text that the database says). 22P03:
// the cell has no binary form as that type, as a date of another DateStyle.
Status AppendCell(const RowBatch::Column& column, size_t row, const ColumnType& type, bool binary,
                  std::string* out);

}  // namespace sluice::server::pgwire
