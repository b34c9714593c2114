#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/value.h"
#include "catalog/result_table.h"
#include "models/registry/registry.h"
#include "planner/explain_internal.h"

namespace sluice::planner {
std::string DescribeLeftOut(const plan::TrainPlan& plan) {
  // A table may have hundreds of columns, and a client shows one line.
  constexpr int kShownColumns = 20;
  std::vector<std::string> columns;
  for (const plan::LeftOut& column : plan.left_out()) {
    columns.push_back(fmt::format("{} ({})", column.column(), column.reason()));
  }
  if (columns.empty()) {
    return "";
  }
  const size_t rest = columns.size() > kShownColumns ? columns.size() - kShownColumns : 0;
  columns.resize(columns.size() - rest);
  return fmt::format("left out: {}{}; COLUMN includes a column nevertheless",
                     fmt::join(columns, ", "), rest > 0 ? fmt::format(" and {} more", rest) : "");
}

std::string DescribeThreshold(const plan::TrainPlan& plan) {
  const models::LabelPlan& label = plan.model().features().label();
  const std::string& rule = plan.threshold();
  if (rule.empty() || label.classes_size() != 2) {
    return "";
  }
  const std::string says = fmt::format("'{}' from the probability ", label.classes(1));
  if (rule == "f1") {
    return says + "that gives the best F1 on the validation rows";
  }
  if (rule.starts_with("cost:")) {
    return says + fmt::format(
                      "of least cost on the validation rows, where a miss costs {} and a "
                      "false alarm 1",
                      rule.substr(5));
  }
  return says + rule;
}

namespace {

std::string_view CurveOf(const models::LabelPlan& label) {
  switch (label.curve()) {
    case models::LabelPlan::ROOT:
      return "sqrt(y)";
    case models::LabelPlan::LOGARITHM:
      return "log(1 + y)";
    default:
      return "y";
  }
}

}  // namespace

std::string DescribeLabel(const models::LabelPlan& label) {
  const std::string_view type = DataTypeName(static_cast<DataType>(label.type()));
  switch (label.kind()) {
    case models::LabelPlan::CLASS:
      return fmt::format("{} ({}), {}", label.column(), type,
                         DescribeValues(label.classes(), "classes"));
    case models::LabelPlan::VECTOR:
      return fmt::format("{} ({}), a vector of {} numbers{}", label.column(), type, label.width(),
                         label.scales_size() > 0
                             ? ", each learnt as its distance from its mean, by its deviation"
                             : "");
    case models::LabelPlan::NUMBER:
      return label.scale() != 1 || label.mean() != 0
                 ? fmt::format("{} ({}), a number{}, learnt as ({} - {:.6g}) / {:.6g}",
                               label.column(), type,
                               label.never_negative() ? " that is never negative" : "",
                               CurveOf(label), label.mean(), label.scale())
             : label.curve() != models::LabelPlan::STRAIGHT
                 ? fmt::format("{} ({}), a number, learnt as {}", label.column(), type,
                               CurveOf(label))
                 : fmt::format("{} ({}), a number", label.column(), type);
    default:
      return "none";
  }
}

std::string DescribeAttribute(const models::Attribute& attribute) {
  switch (attribute.value_case()) {
    case models::Attribute::kFlag:
      return attribute.flag() ? "true" : "false";
    case models::Attribute::kInteger:
      return fmt::format("{}", attribute.integer());
    case models::Attribute::kNumber:
      return fmt::format("{:.6g}", attribute.number());
    case models::Attribute::kText:
      return attribute.text();
    case models::Attribute::kNumbers: {
      std::vector<std::string> numbers;
      for (const double number : attribute.numbers().values()) {
        numbers.push_back(fmt::format("{:.6g}", number));
      }
      return fmt::format("[{}]", fmt::join(numbers, ", "));
    }
    case models::Attribute::kTexts:
      return fmt::format("[{}]", fmt::join(attribute.texts().values(), ", "));
    default:
      return "";
  }
}

std::string DescribeOptimizer(const models::OptimizerSpec& optimizer) {
  std::vector<std::string> arguments;
  for (const models::Attribute& argument : optimizer.arguments()) {
    arguments.push_back(fmt::format("{}={}", argument.name(), DescribeAttribute(argument)));
  }
  return fmt::format("{}({})", optimizer.name(), fmt::join(arguments, ", "));
}

std::string DescribeSplitColumns(const plan::Split& split) {
  std::string columns = split.column();
  for (const std::string& finer : split.finer_columns()) {
    columns += ", " + finer;
  }
  return columns;
}

std::string DescribeSplit(const plan::Split& split) {
  const std::string share = fmt::format("{:.3g}%", split.fraction() * 100);
  switch (split.kind()) {
    case plan::Split::NONE:
      return "none";
    case plan::Split::RANDOM:
      return fmt::format("{} of the rows at random (seed {})", share, split.seed());
    case plan::Split::HASH:
      return fmt::format("{} of the rows by hash of {} (seed {})", share, split.column(),
                         split.seed());
    case plan::Split::TIME:
      return fmt::format("the latest {} of the rows by {}", share, DescribeSplitColumns(split));
    case plan::Split::COLUMN:
      return fmt::format("rows where {} is true", split.column());
    case plan::Split::SELECT:
      return "the rows of " + split.select();
    default:
      return "";
  }
}

// Workers that only add up sums: the optimum of a linear model needs no servers.
bool AddsUp(const plan::Strategy& strategy) {
  return strategy.kind() == plan::Strategy::PARAMETER_SERVER && strategy.parameter_servers() == 0;
}

std::string DescribeServers(const plan::Strategy& strategy) {
  const uint32_t servers = strategy.parameter_servers();
  if (strategy.max_parameter_servers() > servers) {
    return fmt::format("{} to {} parameter servers", servers, strategy.max_parameter_servers());
  }
  return fmt::format("{} parameter server{}", servers, servers == 1 ? "" : "s");
}

std::string DescribeStrategy(const plan::Strategy& strategy) {
  if (strategy.kind() == plan::Strategy::LOCAL) {
    return strategy.mode() == plan::Strategy::SYNCHRONOUS
               ? fmt::format("in this process, synchronous, {} micro-batches a step",
                             strategy.micro_batches())
               : "in this process";
  }
  std::string text = fmt::format("{} workers ({} to {}), ", strategy.workers(),
                                 strategy.min_workers(), strategy.max_workers());
  if (AddsUp(strategy)) {
    return text + "which add up shards; the master decides";
  }
  text += strategy.kind() == plan::Strategy::ALL_REDUCE ? "all-reduce" : DescribeServers(strategy);
  if (strategy.transport() == plan::Strategy::BFLOAT16) {
    text += ", bf16 messages";
  }
  switch (strategy.mode()) {
    case plan::Strategy::SYNCHRONOUS:
      return text + fmt::format(", synchronous, {} micro-batches a step", strategy.micro_batches());
    case plan::Strategy::BOUNDED_STALENESS:
      return text + fmt::format(", staleness at most {}", strategy.staleness());
    default:
      return text + ", asynchronous";
  }
}

std::string DescribeSurvival(const plan::TrainPlan& plan) {
  const plan::Strategy& strategy = plan.strategy();
  const bool saved = plan.has_checkpoints();
  const std::string_view otherwise =
      saved ? "it goes on from the newest checkpoint" : "it begins again, once";
  if (strategy.kind() == plan::Strategy::LOCAL) {
    return "";
  }
  if (AddsUp(strategy)) {
    return models::IsTrees(plan.model())
               ? "workers, and the master, which goes on after the rounds that it has grown"
               : "workers, and the master, which begins to add up again";
  }
  if (strategy.kind() == plan::Strategy::ALL_REDUCE) {
    return fmt::format("the master, and workers while one is left; when all are lost at once, {}",
                       saved ? otherwise : "it begins again");
  }
  if (strategy.replicas() > 0) {
    if (strategy.parameter_servers() < 2) {
      return fmt::format(
          "workers, the master, and, while there are two servers or more, servers one at a time; "
          "when all copies of a parameter are lost at once, {}",
          otherwise);
    }
    return fmt::format(
        "workers, the master, and servers one at a time; when both copies of a parameter are lost "
        "at once, {}",
        otherwise);
  }
  return fmt::format("workers and the master; when a parameter server is lost, {}", otherwise);
}

std::string DescribeRepetition(const plan::Strategy& strategy) {
  if (strategy.kind() == plan::Strategy::LOCAL) {
    return "";
  }
  return strategy.mode() == plan::Strategy::SYNCHRONOUS || AddsUp(strategy)
             ? "to the last bit, on any number of workers and servers"
             : "in its rows, not to the last bit: updates come in the order of the workers";
}

std::string DescribeCheckpoints(const plan::Checkpoints& checkpoints) {
  return fmt::format(
      "{} every {} steps, {} kept", checkpoints.directory(), checkpoints.every_steps(),
      checkpoints.keep() == 0 ? std::string("all") : fmt::format("{}", checkpoints.keep()));
}

std::string ResultName(const plan::ResultTable& table) {
  return catalog::TableName{table.schema_written() ? table.schema() : "", table.name()}.Text();
}

std::string ResultActionName(const plan::ResultTable& table) {
  switch (static_cast<catalog::ResultAction>(table.action())) {
    case catalog::ResultAction::kMake:
      return "make";
    case catalog::ResultAction::kRefill:
      return "refill";
    case catalog::ResultAction::kReplace:
      return "replace";
    case catalog::ResultAction::kAppend:
      break;
  }
  return "append";
}

std::string DescribeResult(const plan::ResultTable& table) {
  const std::string name = "table " + ResultName(table);
  switch (static_cast<catalog::ResultAction>(table.action())) {
    case catalog::ResultAction::kMake:
      return name + ", which is new";
    case catalog::ResultAction::kRefill:
      return name + ", refilled in one step";
    case catalog::ResultAction::kReplace:
      return name + ", dropped and made anew in one step";
    case catalog::ResultAction::kAppend:
      break;
  }
  return name + ", which gets further rows in one step";
}

std::string ModelNameOf(const std::string& schema, const std::string& name, int64_t version) {
  return fmt::format("{}{}{}{}", schema, schema.empty() ? "" : ".", name,
                     version > 0 ? fmt::format(":{}", version) : "");
}

}  // namespace sluice::planner
