#pragma once

#include <string>

namespace sluice::catalog {

// A table's name as the database stores it: without quotes, and case-folded if the database folds.
struct TableName {
  std::string schema;  // "" when none was written
  std::string name;

  // Quoted again, for use in a statement.
  std::string Quoted() const;
  // For people: quoted if it would otherwise be read differently ("Out Table", lab.result).
  std::string Text() const;
  bool operator==(const TableName&) const = default;
};

}  // namespace sluice::catalog
