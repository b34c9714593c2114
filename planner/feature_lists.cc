#include "planner/feature_lists.h"

#include <fmt/core.h>

#include <algorithm>

#include "planner/error_list.h"

namespace sluice::planner {

Status ReadFeatureLists(const AttributeSet& attributes, const ColumnIndex& columns,
                        const std::vector<std::string>& excluded,
                        std::vector<std::string>* left_out) {
  left_out->assign(excluded.size(), "");
  const auto exclude = attributes.Texts("features.exclude");
  const auto only = attributes.Texts("features.only");
  ErrorList errors;
  for (const char* name : {"features.exclude", "features.only"}) {
    const Span span = attributes.SpanOf(name);
    std::vector<std::string> missing;
    for (const std::string& column : attributes.Texts(name).value_or(std::vector<std::string>())) {
      const std::optional<size_t> index = columns.Find(column);
      if (!index) {
        missing.push_back(column);
      } else if (!excluded[*index].empty()) {
        errors.Add(InvalidArgument(fmt::format("{}: column '{}' is {}, never a feature", name,
                                               column, excluded[*index]))
                       .At(span));
      }
    }
    if (missing.size() == 1) {
      errors.Add(columns.Missing(missing.front(), span));
    } else if (!missing.empty()) {
      errors.Add(ColumnNotFound(fmt::format("no {} in the SELECT", ListedColumns(missing)))
                     .At(span)
                     .Hint(columns.Nearest(missing)));
    }
  }
  if (exclude && only) {
    errors.Add(InvalidArgument("features.exclude and features.only both say what the features are")
                   .At(attributes.SpanOf("features.exclude"))
                   .Hint("leave one of them out"));
  }
  if (only && only->empty()) {
    errors.Add(
        InvalidArgument("features.only names no column").At(attributes.SpanOf("features.only")));
  }
  const auto lists = [&columns](const std::optional<std::vector<std::string>>& listed, size_t i) {
    return listed && std::any_of(listed->begin(), listed->end(), [&](const std::string& column) {
             return columns.Find(column) == i;
           });
  };
  bool any = false;  // otherwise the errors above have said why there is no feature
  for (size_t i = 0; i < excluded.size(); ++i) {
    any = any || (excluded[i].empty() && lists(only, i));
  }
  for (size_t i = 0; i < excluded.size(); ++i) {
    if (lists(exclude, i)) {
      (*left_out)[i] = "features.exclude";
    } else if (any && !lists(only, i)) {
      (*left_out)[i] = "not in features.only";
    }
  }
  return errors.Take();
}

}  // namespace sluice::planner
