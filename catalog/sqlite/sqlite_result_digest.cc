#include <fmt/core.h>

#include <bit>
#include <cstring>
#include <string_view>

#include "catalog/sqlite/sqlite_cell_internal.h"
#include "catalog/sqlite/sqlite_result_table_internal.h"

namespace sluice::catalog {
namespace {

// One step of a hash in which every output bit depends on every input bit.
uint64_t Mix(uint64_t hash, uint64_t word) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;
  constexpr uint64_t kOther = 0xD6E8FEB86659FD93;
  hash = (hash ^ word) * kOdd;
  hash = (hash ^ (hash >> 32U)) * kOther;
  return hash ^ (hash >> 29U);
}

uint64_t MixBytes(uint64_t hash, std::string_view bytes) {
  hash = Mix(hash, bytes.size());
  while (!bytes.empty()) {
    uint64_t word = 0;
    const std::string_view taken = bytes.substr(0, sizeof(word));
    std::memcpy(&word, taken.data(), taken.size());
    hash = Mix(hash, word);
    bytes.remove_prefix(taken.size());
  }
  return hash;
}

uint64_t HashRow(sqlite3_stmt* row) {
  uint64_t hash = 0;
  for (int i = 0; i < sqlite3_column_count(row); ++i) {
    const int type = sqlite3_column_type(row, i);
    hash = Mix(hash, static_cast<uint64_t>(type));
    switch (type) {
      case SQLITE_INTEGER:
        hash = Mix(hash, static_cast<uint64_t>(sqlite3_column_int64(row, i)));
        break;
      case SQLITE_FLOAT:
        hash = Mix(hash, std::bit_cast<uint64_t>(sqlite3_column_double(row, i)));
        break;
      case SQLITE_TEXT:
      case SQLITE_BLOB:
        hash = MixBytes(hash, CellBytes(row, i));
        break;
      default:
        break;
    }
  }
  return hash;
}

}  // namespace

Result<std::string> DigestSqliteRows(SqliteConnection& connection, const TableName& table) {
  const std::string select = "SELECT * FROM " + table.Quoted();
  ASSIGN_OR_RETURN(const SqliteStatement rows, connection.Prepare(select));
  uint64_t count = 0;
  uint64_t sum = 0;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(rows.get())) == SQLITE_ROW) {
    ++count;
    sum += HashRow(rows.get());
  }
  if (code != SQLITE_DONE) {
    return connection.LastError(select);
  }
  return fmt::format("{}:{:016x}", count, sum);
}

}  // namespace sluice::catalog
