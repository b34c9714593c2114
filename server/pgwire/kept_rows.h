#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "catalog/sql/sql_text.h"

namespace sluice::server::pgwire {

// The rows that a statement of ours has answered with, kept for the database, which is to read them
// from a temporary table that goes with the transaction. Pure; not thread-safe.
class KeptRows {
 public:
  // `number`: no other table of the transaction has it.
  explicit KeptRows(int number, catalog::Dialect dialect = catalog::Dialect::kPostgres)
      : number_(number), dialect_(dialect) {}

  // What the statement says, as whole messages with rows in text format. Returns what the client is
  // to hear of it, its notices. 54000: more rows than are kept.
  Result<std::string> Take(std::string_view messages);

  // It has said which columns its rows have.
  bool has_columns() const { return !columns_.empty(); }
  // The statements that make and fill the table, each of a size that a server likes.
  std::vector<std::string> Statements() const;
  // SELECT of all of them.
  std::string Select() const;

 private:
  struct Column {
    std::string name;  // quoted
    std::string type;
  };
  Status TakeColumns(std::string_view body);
  Status TakeRow(std::string_view body);
  std::string Table() const;

  int number_;
  catalog::Dialect dialect_;
  std::vector<Column> columns_;
  std::vector<std::string> values_;  // "(...), (...)", lists of some size
  size_t bytes_ = 0;
};

}  // namespace sluice::server::pgwire
