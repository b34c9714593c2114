#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/row_batch.h"
#include "base/status.h"
#include "server/pgwire/sql/column_types.h"

// Cells of a result in DataRow's form. Pure; thread-safe.
namespace sluice::server::pgwire {

// 0A000, with what would be right: binary was asked for, but the type's binary form is not known
// here.
Status CheckBinaryForm(const ColumnType& type, const ColumnInfo& column);

// Appends one field: its length and its value, in text or binary. The batch holds a statement's
// rows in display form (a date, a numeric or an array is the database's text). 22P03: the cell has
// no binary form in that type, such as a date printed in another DateStyle.
Status AppendCell(const RowBatch::Column& column, size_t row, const ColumnType& type, bool binary,
                  std::string* out);

}  // namespace sluice::server::pgwire
