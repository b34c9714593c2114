#pragma once

#include <sqlite3.h>

#include <string_view>

namespace sluice::catalog {

// The bytes of a text, in UTF-8 whatever the database's encoding, or of a blob; of a number, those
// of SQLite's text for it. Valid until the value is read in another way. Not for NULL.
//
// The size is asked for first: that converts, and moves the bytes. Texts are read as blobs then,
// since asking for text makes SQLite copy the bytes to append a terminator.
inline std::string_view CellBytes(sqlite3_value* cell) {
  const auto size = static_cast<size_t>(sqlite3_value_bytes(cell));
  const void* bytes = sqlite3_value_blob(cell);
  return bytes == nullptr ? std::string_view()
                          : std::string_view(static_cast<const char*>(bytes), size);
}
// The same of the current row.
inline std::string_view CellBytes(sqlite3_stmt* row, int column) {
  const auto size = static_cast<size_t>(sqlite3_column_bytes(row, column));
  const void* bytes = sqlite3_column_blob(row, column);
  return bytes == nullptr ? std::string_view()
                          : std::string_view(static_cast<const char*>(bytes), size);
}

}  // namespace sluice::catalog
