#pragma once

#include <string>
#include <vector>

#include "catalog/data_source.h"
#include "catalog/postgres/postgres_database_internal.h"

// The statement that reads a shard: the same for a reader and for the process that reads for it.
namespace sluice::catalog {

struct ShardSelect {
  std::string sql;  // of a ctid cut: its last {begin} and {end} stand for the bounds
  StreamColumns columns;
  bool copied = false;  // into a table: as text that PostgreSQL reads back as the same values
};

// Rows with the columns of ShardReader::Read. 54011: the server cannot send so many.
Result<ShardSelect> MakeShardSelect(const DatasetSpec& spec, const Schema& schema,
                                    const std::vector<size_t>& columns,
                                    const CopiedColumns& copied);

// How the server has to make the texts of cells; each includes those before.
enum class CellTexts { kAny, kReadable, kPinned };
CellTexts TextsOf(const PostgresConnection& connection, const ShardSelect& select);
// Ensures that for the transaction of a connection.
Status MakeTexts(PostgresConnection& connection, const DatasetSpec& spec, CellTexts wanted);

}  // namespace sluice::catalog
