#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>

namespace sluice::planner {

// The names of a result's columns, no two of which differ in letter case only.
class ResultNames {
 public:
  // `most_bytes`: of a name that the database keeps.
  explicit ResultNames(size_t most_bytes) : most_bytes_(most_bytes) {}

  void Add(std::string_view name);
  bool Has(std::string_view name) const;
  // Adds a column under `wanted`, cut to what the database keeps, and numbered if another one has
  // that name: "actual_2".
  std::string AddLike(std::string_view wanted);

 private:
  const size_t most_bytes_;
  std::unordered_set<std::string> names_;  // in lower case
};

}  // namespace sluice::planner
