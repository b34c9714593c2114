#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "models/features/cell_format.h"
#include "planner/derive_internal.h"
#include "planner/free_text.h"

namespace sluice::planner {
namespace {

constexpr std::string_view kDelimiters = ";|,";
// Fewer combinations are as well known each by itself.
constexpr size_t kMinCombinations = 12;
constexpr size_t kMaxNames = 1000;
constexpr double kMinNamesPerCell = 1.2;
constexpr size_t kLongestName = 60;
constexpr size_t kLongestCell = 2000;

std::set<std::string> NamesOf(std::string_view cell, char delimiter) {
  std::set<std::string> names;
  while (!cell.empty()) {
    const size_t end = cell.find(delimiter);
    const std::string_view name = models::TrimBlanks(cell.substr(0, end));
    cell = end == std::string_view::npos ? std::string_view() : cell.substr(end + 1);
    if (!name.empty()) {
      names.emplace(name);
    }
  }
  return names;
}

// Each name must occur in several combinations: of "Paris, France" only the countries do.
std::optional<NameLists> SplitBy(char delimiter, const std::vector<std::string>& cells) {
  std::map<std::string, size_t> rows_with;
  std::set<std::set<std::string>> combinations;
  size_t filled = 0;
  size_t all = 0;
  for (const std::string& cell : cells) {
    if (cell.size() > kLongestCell) {
      return std::nullopt;
    }
    std::set<std::string> names = NamesOf(cell, delimiter);
    if (names.empty()) {
      continue;
    }
    ++filled;
    all += names.size();
    for (const std::string& name : names) {
      ++rows_with[name];
      if (name.size() > kLongestName || rows_with.size() > kMaxNames) {
        return std::nullopt;
      }
    }
    combinations.insert(std::move(names));
  }
  if (combinations.size() < kMinCombinations || 2 * rows_with.size() > combinations.size() ||
      static_cast<double>(all) < kMinNamesPerCell * static_cast<double>(filled)) {
    return std::nullopt;
  }
  std::vector<std::pair<size_t, std::string>> ordered;
  for (const auto& [name, rows] : rows_with) {
    ordered.emplace_back(rows, name);
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  NameLists lists;
  lists.delimiter = delimiter;
  for (auto& [rows, name] : ordered) {
    lists.names.push_back(std::move(name));
  }
  return lists;
}

}  // namespace

std::optional<NameLists> FindNameLists(const std::vector<std::string>& cells) {
  for (const char delimiter : kDelimiters) {
    if (auto lists = SplitBy(delimiter, cells)) {
      return lists;
    }
  }
  return std::nullopt;
}

bool FeatureMaker::AddNameLists(const ColumnFacts& column, const FeaturePart& part) {
  const std::vector<std::string> texts = TextsOf(input_.statistics.sample, column.index);
  std::optional<NameLists> lists;
  if (!AreListsOfTexts(texts)) {  // whose brackets and quotes only words are read without
    lists = FindNameLists(texts);
  }
  if (!lists) {
    return false;
  }
  models::Feature* feature = Add(column.name(), {column.index}, part);
  models::TensorFormat* cells = feature->mutable_format();
  cells->set_kind(models::TensorFormat::CSV);
  cells->set_delimiter(std::string(1, lists->delimiter));
  cells->set_sparse(true);
  FillVocabulary(std::move(lists->names), feature->mutable_categorizer());
  cells->add_shape(feature->categorizer().buckets());
  Represent(feature, "sum");
  return true;
}

}  // namespace sluice::planner
