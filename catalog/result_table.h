#pragma once

#include <cstdint>
#include <string>

#include "catalog/sql/table_name.h"

// Tables that hold what a statement computed. The catalog (result_tables) records which of them
// Sluice wrote, with their columns and an identity that distinguishes the table from another of its
// name (SQLite: the rows that were written). Only a table that still matches its record, and itself
// carries the mark, is refilled without being asked for.
namespace sluice::catalog {

// A statement's request.
struct ResultTable {
  TableName name;        // without a schema: the database's own choice
  bool replace = false;  // WITH result.replace = true
  bool append = false;   // WITH result.append = true
  std::string kind;      // of the statement, for the record: "predict" ...
  int64_t job = 0;       // that writes it; 0: none
};

enum class ResultAction : int {
  kMake = 0,     // there is no such table
  kRefill = 1,   // ours, with these columns: replaces its rows; all else stays
  kReplace = 2,  // ours with other columns, or asked for: dropped and created again
  kAppend = 3,   // adds the rows
};

struct ResultPlan {
  TableName name;  // with its present or future schema
  ResultAction action = ResultAction::kMake;
};

}  // namespace sluice::catalog
