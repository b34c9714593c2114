#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "catalog/sql/sql_text.h"

namespace sluice::server::pgwire {

// Keeps the rows that a statement of ours returns for the database, which reads them from a
// temporary table that is dropped with the transaction. Pure; not thread-safe.
class KeptRows {
 public:
  // `number`: unique among the tables of the transaction.
  explicit KeptRows(int number, catalog::Dialect dialect = catalog::Dialect::kPostgres)
      : number_(number), dialect_(dialect) {}

  // Takes the statement's output as whole messages, with rows in text format. Returns the part for
  // the client: notices. 54000: more rows than are kept.
  Result<std::string> Take(std::string_view messages);

  // Whether the columns of the rows are known.
  bool has_columns() const { return !columns_.empty(); }
  size_t bytes() const { return bytes_; }
  // The statements that create and fill the table, each of a moderate size.
  std::vector<std::string> Statements() const;
  // A SELECT of all rows.
  std::string Select() const;

 private:
  struct Column {
    std::string name;  // quoted
    std::string type;
  };
  Status TakeColumns(std::string_view body);
  Status TakeRow(std::string_view body);
  std::string Table() const;
  std::string OwnTypes() const;

  int number_;
  catalog::Dialect dialect_;
  std::vector<Column> columns_;
  std::string others_;  // VALUES of columns whose types have no names here: number, OID, modifier
  std::vector<std::string> values_;  // "(...), (...)", lists of limited size
  size_t bytes_ = 0;
};

}  // namespace sluice::server::pgwire
