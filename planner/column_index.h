#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::planner {

// "column a", "columns a, b, c": for a message about all of them.
std::string ListedColumns(const std::vector<std::string>& names);

// Finds the columns of a SELECT by name in constant time: a table of ten thousand columns may have
// ten thousand names in its COLUMN clause. Same rule as Schema::Find: the exact name, else the only
// one that is equal in any case. Keeps no reference to the schema.
class ColumnIndex {
 public:
  ColumnIndex() = default;
  explicit ColumnIndex(const Schema& schema);

  std::optional<size_t> Find(std::string_view name) const;
  const std::vector<std::string>& names() const { return names_; }

  // "no column 'clss' in the SELECT", 42703, with the nearest name.
  Status Missing(std::string_view name, Span span) const;
  // Similar names here: "is it 'class' there?", "" if no name is similar.
  std::string Nearest(const std::vector<std::string>& missing) const;

 private:
  static constexpr size_t kAmbiguous = static_cast<size_t>(-1);

  std::vector<std::string> names_;
  std::unordered_map<std::string, size_t> exact_;
  std::unordered_map<std::string, size_t> any_case_;  // kAmbiguous: several
};

}  // namespace sluice::planner
