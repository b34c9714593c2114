#include "planner/metric_list.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/letter_case.h"

namespace sluice::planner {

std::vector<std::string> SplitList(std::string_view list) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    std::string_view part = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    const size_t begin = part.find_first_not_of(" \t\n\r");
    if (begin != std::string_view::npos) {
      part = part.substr(begin, part.find_last_not_of(" \t\n\r") - begin + 1);
      parts.emplace_back(part);
    }
  }
  return parts;
}

Result<std::vector<std::string>> ReadMetrics(std::string_view list, const models::ModelSpec& model,
                                             Span span) {
  const std::vector<std::string> known = models::Metrics::Names(model);
  std::vector<std::string> metrics;
  Status errors;
  for (const std::string& name : SplitList(list)) {
    const std::string canonical = models::Metrics::CanonicalName(name);
    if (std::find(known.begin(), known.end(), canonical) != known.end()) {
      const bool same = LowerAscii(name) == canonical;
      const bool twice = std::any_of(metrics.begin(), metrics.end(), [&](const auto& other) {
        return LowerAscii(other) == LowerAscii(name);
      });
      if (!twice) {
        metrics.push_back(same ? canonical : name);
      }
      continue;
    }
    const std::optional<std::string> nearest = NearestName(name, known);
    errors.Add(InvalidArgument(canonical.empty()
                                   ? fmt::format("unknown metric '{}'", name)
                                   : fmt::format("metric '{}' does not suit this model", name))
                   .At(span)
                   .Hint(nearest ? fmt::format("did you mean '{}'? There are {}", *nearest,
                                               fmt::join(known, ", "))
                                 : fmt::format("there are {}", fmt::join(known, ", "))));
  }
  if (!errors.ok()) {
    return errors;
  }
  return metrics;
}

}  // namespace sluice::planner
