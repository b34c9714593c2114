#pragma once

#include <cstdint>
#include <string>

#include "catalog/sql/table_name.h"

// Tables that hold what a statement computed. Which of them Sluice wrote is recorded in the
// catalog (result_tables), with the columns they had and what tells the table itself from another
// of its name (SQLite: the rows that were written); only a table of which all that is still true,
// and that says so itself, is refilled without being told.
namespace sluice::catalog {

// What a statement asks for.
struct ResultTable {
  TableName name;        // without a schema: the database's own choice
  bool replace = false;  // WITH result.replace = true
  bool append = false;   // WITH result.append = true
  std::string kind;      // of the statement, for the record: "predict" ...
  int64_t job = 0;       // that writes it; 0: none
};

enum class ResultAction : int {
  kMake = 0,     // there is no such table
  kRefill = 1,   // ours, and of these columns: its rows go, the new ones come; all else stays
  kReplace = 2,  // dropped and made anew
  kAppend = 3,   // gets the rows besides those it has
};

struct ResultPlan {
  TableName name;  // with the schema that it is, or will be, in
  ResultAction action = ResultAction::kMake;
};

}  // namespace sluice::catalog
