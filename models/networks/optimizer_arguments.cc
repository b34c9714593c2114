#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "models/model.pb.h"
#include "models/networks/optimizer_arguments_internal.h"

namespace sluice::models {
namespace {

Result<double> ArgumentValue(const Attribute& attribute) {
  switch (attribute.value_case()) {
    case Attribute::kFlag:
      return attribute.flag() ? 1.0 : 0.0;
    case Attribute::kInteger:
      return static_cast<double>(attribute.integer());
    case Attribute::kNumber:
      return attribute.number();
    default:
      return InvalidArgument(
          fmt::format("optimizer argument '{}' must be a number", attribute.name()));
  }
}

Status CheckRange(const OptimizerDescription& optimizer, const OptimizerArgument& argument,
                  double value) {
  const bool flag_ok = !argument.is_flag || value == 0 || value == 1;
  // Written so that NaN fails.
  if (flag_ok && value >= argument.min && value <= argument.max) {
    return OkStatus();
  }
  return InvalidArgument(
      fmt::format("{} of {} must be {}, but is {}", argument.name, optimizer.name,
                  argument.is_flag ? "true or false"
                                   : fmt::format("between {} and {}", argument.min, argument.max),
                  value));
}

}  // namespace

Result<OptimizerArguments> ResolveArguments(const OptimizerDescription& optimizer,
                                            const OptimizerSpec& spec) {
  OptimizerArguments values;
  std::vector<std::string> names;
  for (const OptimizerArgument& argument : optimizer.arguments) {
    values[argument.name] = argument.default_value;
    names.push_back(argument.name);
  }
  for (const Attribute& attribute : spec.arguments()) {
    const auto known =
        std::find_if(optimizer.arguments.begin(), optimizer.arguments.end(),
                     [&](const OptimizerArgument& a) { return a.name == attribute.name(); });
    if (known == optimizer.arguments.end()) {
      Status status = InvalidArgument(
          fmt::format("optimizer {} has no argument '{}'", optimizer.name, attribute.name()));
      if (const auto near = NearestName(attribute.name(), names)) {
        return std::move(status).Hint(fmt::format("did you mean '{}'?", *near));
      }
      return status;
    }
    ASSIGN_OR_RETURN(const double value, ArgumentValue(attribute));
    RETURN_IF_ERROR(CheckRange(optimizer, *known, value));
    values[known->name] = value;
  }
  return values;
}

}  // namespace sluice::models
