#include "planner/contest_request.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/letter_case.h"
#include "models/registry/registry.h"
#include "planner/error_list.h"

namespace sluice::planner {
namespace {

constexpr std::string_view kTune = "tune.";

bool IsOf(const std::vector<models::AttributeSpec>& specs, const std::string& name) {
  return std::any_of(specs.begin(), specs.end(),
                     [&](const auto& spec) { return LowerAscii(spec.name) == name; });
}

Status ReadTuned(const parser::Attribute& attribute, const ContestRequest& request,
                 TunedAttribute* tuned) {
  const std::string name = attribute.name.text.substr(kTune.size());
  for (const TunedAttribute& other : request.tuned) {
    if (LowerAscii(other.name) == LowerAscii(name)) {
      return InvalidArgument(fmt::format("attribute {} is given twice", attribute.name.text))
          .At(attribute.name.span);
    }
  }
  const auto* list = std::get_if<parser::AttributeValue::List>(&attribute.value.value);
  if (list == nullptr || list->size() < 2) {
    return InvalidArgument(
               fmt::format("attribute {} must be a range or several values", attribute.name.text))
        .At(attribute.value.span)
        .Hint(fmt::format("write {} = [low, high], or [one, or, another]", attribute.name.text));
  }
  tuned->name = name;
  tuned->values = *list;
  tuned->span = attribute.name.span;
  tuned->value_span = attribute.value.span;
  return OkStatus();
}

}  // namespace

Status ReadContestRequest(const parser::TrainStatement& statement, ContestRequest* request) {
  ErrorList errors;
  request->training = statement;
  request->training.attributes.clear();
  std::vector<parser::Attribute> automatic;
  std::vector<parser::Attribute> search;
  for (const parser::Attribute& attribute : statement.attributes) {
    const std::string name = LowerAscii(attribute.name.text);
    if (name.starts_with("auto.")) {
      request->automatic_span = automatic.empty() ? attribute.name.span : request->automatic_span;
      automatic.push_back(attribute);
    } else if (name.starts_with(kTune)) {
      request->search_span =
          request->search_span.valid() ? request->search_span : attribute.name.span;
      if (IsOf(models::StatementAttributes("tune"), name)) {
        search.push_back(attribute);
        continue;
      }
      TunedAttribute tuned;
      const Status read = ReadTuned(attribute, *request, &tuned);
      errors.Add(read);
      if (read.ok()) {
        request->tuned.push_back(std::move(tuned));
      }
    } else {
      request->training.attributes.push_back(attribute);
    }
  }
  errors.Add(AttributeSet::Bind(models::StatementAttributes("auto"), "auto", statement.span,
                                automatic, &request->automatic));
  errors.Add(AttributeSet::Bind(models::StatementAttributes("tune"), "tune", statement.span, search,
                                &request->search));
  if (errors.empty() && request->tuned.empty() && !search.empty()) {
    errors.Add(
        InvalidArgument(fmt::format("{} is given, and nothing to search", search.front().name.text))
            .At(search.front().name.span)
            .Hint("tune.eta=[0.01, 0.3] searches eta between the two"));
  }
  return errors.Take();
}

}  // namespace sluice::planner
