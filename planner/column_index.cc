#include "planner/column_index.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/letter_case.h"

namespace sluice::planner {
namespace {

// Number of columns that a message lists when no name is similar.
constexpr size_t kMaxListed = 12;
// The same for missing columns: the user has to select them all, so list them all.
constexpr size_t kMaxMissing = 100;

}  // namespace

std::string ListedColumns(const std::vector<std::string>& names) {
  const size_t listed = std::min(names.size(), kMaxMissing);
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(listed);
  return fmt::format(
      "column{} {}{}", names.size() == 1 ? "" : "s", fmt::join(names.begin(), end, ", "),
      listed < names.size() ? fmt::format(" and {} others", names.size() - listed) : "");
}

std::string ColumnIndex::Nearest(const std::vector<std::string>& missing) const {
  std::string near;
  for (size_t i = 0; i < std::min(missing.size(), kMaxListed); ++i) {
    if (const std::optional<std::string> nearest = NearestName(missing[i], names_)) {
      near += missing.size() == 1
                  ? fmt::format("is it '{}' there?", *nearest)
                  : fmt::format("{}'{}' for {}", near.empty() ? "the nearest names are " : ", ",
                                *nearest, missing[i]);
    }
  }
  return near;
}

ColumnIndex::ColumnIndex(const Schema& schema) : names_(schema.Names()) {
  for (size_t i = 0; i < names_.size(); ++i) {
    exact_.emplace(names_[i], i);
    const auto [found, fresh] = any_case_.emplace(LowerAscii(names_[i]), i);
    if (!fresh) {
      found->second = kAmbiguous;
    }
  }
}

std::optional<size_t> ColumnIndex::Find(std::string_view name) const {
  const auto exact = exact_.find(std::string(name));
  if (exact != exact_.end()) {
    return exact->second;
  }
  const auto any_case = any_case_.find(LowerAscii(name));
  if (any_case == any_case_.end() || any_case->second == kAmbiguous) {
    return std::nullopt;
  }
  return any_case->second;
}

Status ColumnIndex::Missing(std::string_view name, Span span) const {
  Status status = ColumnNotFound(fmt::format("no column '{}' in the SELECT", name)).At(span);
  if (const std::optional<std::string> nearest = NearestName(name, names_)) {
    return std::move(status).Hint(fmt::format("did you mean '{}'?", *nearest));
  }
  const size_t listed = std::min(names_.size(), kMaxListed);
  const auto end = names_.begin() + static_cast<std::ptrdiff_t>(listed);
  return std::move(status).Hint(fmt::format("its columns are {}{}",
                                            fmt::join(names_.begin(), end, ", "),
                                            listed < names_.size() ? ", ..." : ""));
}

}  // namespace sluice::planner
