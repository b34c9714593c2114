#include "planner/bind_optimize.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "models/registry.h"
#include "parser/printer.h"
#include "planner/attributes.h"
#include "planner/error_list.h"
#include "planner/metric_list.h"

namespace sluice::planner {
namespace {

using models::AttributeSpec;
using models::AttributeType;
using parser::Expression;

std::vector<std::string> VariableTypes() {
  std::vector<std::string> types = {"Binary"};
  for (const char* domain : {"Integers", "Reals"}) {
    for (const char* sign : {"", "Positive", "Negative", "NonPositive", "NonNegative"}) {
      types.push_back(fmt::format("{}{}", sign, domain));
    }
  }
  return types;
}

AttributeSpec Spec(std::string name, AttributeType type, bool required, std::string doc) {
  AttributeSpec spec;
  spec.name = std::move(name);
  spec.type = type;
  spec.required = required;
  spec.doc = std::move(doc);
  return spec;
}

const std::vector<AttributeSpec>& Attributes() {
  static const std::vector<AttributeSpec> specs = [] {
    std::vector<AttributeSpec> made = {
        Spec("variables", AttributeType::kText, true, "'amount(product)' or 'product'"),
        Spec("var_type", AttributeType::kText, true,
             "what a variable may be: Binary, Integers ..."),
        Spec("data.enable_slice", AttributeType::kFlag, false, "cut the data into slices"),
        Spec("data.batch_size", AttributeType::kInteger, false, "rows of a slice"),
        Spec("worker.num", AttributeType::kInteger, false, "workers"),
        Spec("worker.core", AttributeType::kInteger, false, "processors of a worker"),
        Spec("worker.memory", AttributeType::kInteger, false, "memory of a worker, MB"),
        Spec("solver.max_iter", AttributeType::kInteger, false, "most iterations of the solver")};
    made[1].allowed = VariableTypes();
    return made;
  }();
  return specs;
}

// No solver of linear programs has "not equal".
void CheckOperators(const Expression& expression, ErrorList* errors) {
  if (expression.kind == Expression::Kind::kBinary &&
      (expression.text == "!=" || expression.text == "<>")) {
    errors->Add(InvalidArgument(fmt::format("{}: {} is not allowed in TO MAXIMIZE and TO MINIMIZE",
                                            parser::Print(expression), expression.text))
                    .At(expression.span)
                    .Hint("use <, <=, =, >= or >"));
  }
  for (const Expression& argument : expression.args) {
    CheckOperators(argument, errors);
  }
}

// "amount(product, plant)": a value `amount` for each pair; "product": a value per product.
Status ReadVariables(const std::string& text, Span span, BoundOptimize* bound) {
  const size_t open = text.find('(');
  std::string list = text;
  if (open != std::string::npos) {
    if (text.back() != ')') {
      return InvalidArgument(fmt::format("attribute variables: '{}' has no closing ')'", text))
          .At(span);
    }
    bound->result_column = text.substr(0, open);
    list = text.substr(open + 1, text.size() - open - 2);
  }
  bound->variables = SplitList(list);
  if (bound->variables.empty() || (open == 0)) {
    return InvalidArgument(fmt::format("attribute variables: '{}' names no column", text))
        .At(span)
        .Hint("write 'column' or 'value(column, column)'");
  }
  if (open == std::string::npos) {
    // A result beside the column itself needs a name of its own only for a single column.
    bound->result_column =
        bound->variables.size() == 1 ? bound->variables[0] : bound->variables[0] + "_value";
  }
  return OkStatus();
}

}  // namespace

Result<BoundOptimize> BindOptimize(const parser::OptimizeStatement& statement) {
  ErrorList errors;
  AttributeSet attributes;
  errors.Add(AttributeSet::Bind(Attributes(), statement.maximize ? "TO MAXIMIZE" : "TO MINIMIZE",
                                statement.span, statement.attributes, &attributes));
  CheckOperators(statement.objective, &errors);
  for (const parser::OptimizeStatement::Constraint& constraint : statement.constraints) {
    CheckOperators(constraint.expression, &errors);
  }
  BoundOptimize bound;
  if (const auto variables = attributes.Text("variables")) {
    errors.Add(ReadVariables(*variables, attributes.SpanOf("variables"), &bound));
  }
  bound.variable_type = attributes.Text("var_type").value_or("");
  if (!errors.empty()) {
    return errors.Take();
  }
  return bound;
}

}  // namespace sluice::planner
