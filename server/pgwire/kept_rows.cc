#include "server/pgwire/kept_rows.h"

#include <fmt/core.h>

#include "catalog/sql/sql_text.h"
#include "catalog/sql/types_of_others.h"
#include "server/pgwire/messages.h"
#include "server/pgwire/sql/column_types.h"

namespace sluice::server::pgwire {
namespace {

// Rows are held in memory until the statement has ended; for more, users write them to a table.
constexpr size_t kMostBytes = size_t{256} << 20;
// Size of one INSERT.
constexpr size_t kListBytes = size_t{256} << 10;
constexpr uint32_t kNull = 0xffffffffU;

std::string TypeName(uint32_t oid) {
  if (const BuiltInType* type = FindBuiltInType(oid)) {
    return "pg_catalog." + std::string(type->quoted);
  }
  const BuiltInType* const element = FindElementType(oid);
  return element == nullptr ? "pg_catalog.text"
                            : "pg_catalog." + std::string(element->quoted) + "[]";
}

Status Broken() {
  return Internal("a statement's answer is not of PostgreSQL's protocol");
}

}  // namespace

Result<std::string> KeptRows::Take(std::string_view messages) {
  std::string heard;
  while (messages.size() >= kHeaderBytes) {
    const size_t size = 1 + size_t{LoadBigEndian<uint32_t>(messages.substr(1))};
    if (size < kHeaderBytes || size > messages.size()) {
      return Broken();
    }
    const std::string_view message = messages.substr(0, size);
    messages.remove_prefix(size);
    const std::string_view body = message.substr(kHeaderBytes);
    switch (message.front()) {
      case 'T':
        RETURN_IF_ERROR(TakeColumns(body));
        break;
      case 'D':
        RETURN_IF_ERROR(TakeRow(body));
        break;
      case 'C':
        break;
      default:
        heard += message;
    }
  }
  return heard;
}

Status KeptRows::TakeColumns(std::string_view body) {
  BigEndianReader reader(body);
  columns_.clear();
  others_.clear();
  for (uint16_t left = reader.Take<uint16_t>(); left > 0 && reader.ok(); --left) {
    Column column;
    column.name = catalog::QuoteName(reader.String());
    reader.Take<uint32_t>();  // table's OID
    reader.Take<uint16_t>();  // column's number
    const uint32_t oid = reader.Take<uint32_t>();
    const BuiltInType* known = FindBuiltInType(oid);
    column.type = dialect_ == catalog::Dialect::kPostgres ? TypeName(oid)
                  : known == nullptr                      ? "text"
                                                          : std::string(known->name);
    reader.Take<uint16_t>();  // size
    const auto modifier = static_cast<int32_t>(reader.Take<uint32_t>());
    reader.Take<uint16_t>();  // format
    if (known == nullptr && FindElementType(oid) == nullptr) {
      others_ += fmt::format("{}({}, {}::pg_catalog.oid, {})", others_.empty() ? "" : ", ",
                             columns_.size() + 1, oid, modifier);
    }
    columns_.push_back(std::move(column));
  }
  return reader.at_end() ? OkStatus() : Broken();
}

Status KeptRows::TakeRow(std::string_view body) {
  BigEndianReader reader(body);
  std::string row = "(";
  const uint16_t cells = reader.Take<uint16_t>();
  if (cells != columns_.size()) {
    return Broken();
  }
  for (uint16_t i = 0; i < cells; ++i) {
    row += i == 0 ? "" : ",";
    const uint32_t size = reader.Take<uint32_t>();
    row += size == kNull ? "NULL" : catalog::QuoteText(reader.Bytes(size), dialect_);
  }
  row += ")";
  bytes_ += row.size();
  if (!reader.at_end()) {
    return Broken();
  }
  if (bytes_ > kMostBytes) {
    return Status(Code::kResourceExhausted,
                  fmt::format("a cursor or COPY holds at most {} MiB of a prediction's rows",
                              kMostBytes >> 20U))
        .SqlState("54000")
        .Hint("predict into a table, and read that");
  }
  if (values_.empty() || values_.back().size() + row.size() > kListBytes) {
    values_.push_back(std::move(row));
  } else {
    values_.back() += "," + row;
  }
  return OkStatus();
}

std::string KeptRows::Table() const {
  return fmt::format("{}.sluice_rows_{}",
                     dialect_ == catalog::Dialect::kPostgres ? "pg_temp" : "temp", number_);
}

// Gives columns the types whose names only the server knows; a pseudo-type is none of a column's,
// and what another role has made would run its functions.
std::string KeptRows::OwnTypes() const {
  return fmt::format(
      "BEGIN EXECUTE (SELECT coalesce('ALTER TABLE {} ' OPERATOR(pg_catalog.||)"
      " pg_catalog.string_agg(pg_catalog.format('ALTER c%s TYPE %s USING NULL', v.i,"
      " pg_catalog.format_type(v.t, v.m)), ', '), 'SELECT') FROM (VALUES {}) AS v(i, t, m)"
      " JOIN pg_catalog.pg_type AS y ON y.oid OPERATOR(pg_catalog.=) v.t"
      " WHERE y.typtype OPERATOR(pg_catalog.<>) 'p' AND NOT EXISTS ({})); END",
      Table(), others_, catalog::MakersOfTypes("SELECT v.t"));
}

std::vector<std::string> KeptRows::Statements() const {
  std::vector<std::string> statements;
  std::string columns;
  for (size_t i = 0; i < columns_.size(); ++i) {  // names may repeat
    columns += fmt::format("{}c{} {}", i == 0 ? "" : ", ", i + 1, columns_[i].type);
  }
  const std::string name = Table().substr(Table().find('.') + 1);
  if (dialect_ == catalog::Dialect::kPostgres) {
    statements.push_back(
        fmt::format("CREATE TEMPORARY TABLE {} ({}) ON COMMIT DROP", name, columns));
    if (!others_.empty()) {
      statements.push_back("DO " + catalog::QuoteText(OwnTypes(), dialect_));
    }
  } else {  // there a table outlives its transaction, so drop the previous one now
    if (number_ > 1) {
      statements.push_back(fmt::format("DROP TABLE IF EXISTS temp.sluice_rows_{}", number_ - 1));
    }
    statements.push_back(fmt::format("CREATE TEMPORARY TABLE {} ({})", name, columns));
  }
  for (const std::string& list : values_) {
    statements.push_back(fmt::format("INSERT INTO {} VALUES {}", Table(), list));
  }
  return statements;
}

std::string KeptRows::Select() const {
  std::string names;
  for (size_t i = 0; i < columns_.size(); ++i) {
    names += fmt::format("{}c{} AS {}", i == 0 ? "" : ", ", i + 1, columns_[i].name);
  }
  return fmt::format("SELECT {} FROM {}", names, Table());
}

}  // namespace sluice::server::pgwire
