#include "catalog/postgres/postgres_shard_select_internal.h"

#include <fmt/core.h>

#include <algorithm>

#include "catalog/column_description.h"
#include "catalog/dataset.pb.h"
#include "catalog/postgres/postgres_columns_internal.h"
#include "catalog/postgres/postgres_cut_internal.h"
#include "catalog/row_ranges_internal.h"

namespace sluice::catalog {

// A column that is decoded and copied is sent once if both are made from the same text, since the
// server's output of cells is most of reading.
Result<ShardSelect> MakeShardSelect(const DatasetSpec& spec, const Schema& schema,
                                    const std::vector<size_t>& columns,
                                    const CopiedColumns& copied) {
  std::vector<size_t> all = columns;
  all.insert(all.end(), copied.columns.begin(), copied.columns.end());
  ShardSelect read;
  read.columns.decoded = columns.size();
  read.copied = copied.purpose == CopiedColumns::Purpose::kWrite && !copied.columns.empty();
  ASSIGN_OR_RETURN(read.columns.schema, ChosenSchema(schema, all));
  std::string list = ValuesOf(columns, schema);
  size_t sent = columns.size();
  std::vector<bool> taken(columns.size());
  for (size_t i = 0; i < all.size(); ++i) {
    ColumnInfo& column = read.columns.schema.columns[i];
    if (i < columns.size()) {
      read.columns.sources.push_back(i);
      continue;
    }
    const auto twin = std::find(columns.begin(), columns.end(), all[i]);
    const auto at = static_cast<size_t>(twin - columns.begin());
    const bool binary = IsIn(copied.binary, column);
    const bool shared =
        !binary && twin != columns.end() && !taken[at] && HasOneText(column, read.copied);
    column.type = binary ? DataType::kBytes : read.copied ? DataType::kText : ShownType(column);
    if (shared) {
      taken[at] = true;
      read.columns.sources.push_back(at);
      continue;
    }
    read.columns.sources.push_back(sent++);
    const std::string name = fmt::format("c{}", all[i]);
    list +=
        fmt::format("{}{}{}", list.empty() ? "" : ", ", binary ? BinaryForm(name, column) : name,
                    read.copied ? CastForCopy(column.database_type) : "");
  }
  constexpr size_t kMostSent = 1'664;  // MaxTupleAttributeNumber
  if (sent > kMostSent) {
    return Status(Code::kResourceExhausted,
                  fmt::format("the statement reads {} columns as features and passes {} on: {} "
                              "in all, of which PostgreSQL sends at most {}",
                              columns.size(), copied.columns.size(), sent, kMostSent))
        .SqlState("54011")
        .Hint("WITH predict.keep=[...] names those that are passed on");
  }
  read.sql = fmt::format("SELECT {} FROM (\n{}\n) AS s({})", list,
                         spec.cut() == DatasetSpec::CTID ? spec.shard_select() : spec.select(),
                         NumberedColumns(schema.columns.size()));
  return read;
}

CellTexts TextsOf(const PostgresConnection& connection, const ShardSelect& select) {
  return select.copied          ? CellTexts::kPinned
         : OnlyText(connection) ? CellTexts::kReadable
                                : CellTexts::kAny;
}

// Texts produced by the select itself depend on the session's settings; a staging table's rows were
// made with them.
Status MakeTexts(PostgresConnection& connection, const DatasetSpec& spec, CellTexts wanted) {
  if (wanted == CellTexts::kAny) {
    return OkStatus();
  }
  if (spec.staging_table().empty()) {
    RETURN_IF_ERROR(CheckReadableAsText(
        connection, wanted == CellTexts::kPinned
                        ? "columns that are copied into a table cannot be read exactly"
                        : "over a connection with TLS its rows cannot be read exactly"));
    if (wanted == CellTexts::kReadable) {
      return OkStatus();
    }
  }
  return connection.Run(std::string(kPinnedText));
}

}  // namespace sluice::catalog
