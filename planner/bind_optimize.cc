#include "planner/bind_optimize.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/letter_case.h"
#include "models/registry/registry.h"
#include "parser/printer.h"
#include "planner/attributes.h"
#include "planner/bind_select.h"
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

// Solvers of linear programs have no "not equal", and SUM is the only function in SQLFlow.
void CheckExpression(const Expression& expression, ErrorList* errors) {
  if (expression.kind == Expression::Kind::kCall && UpperAscii(expression.text) != "SUM") {
    errors->Add(
        NotFound(fmt::format("no function {} in TO MAXIMIZE and TO MINIMIZE", expression.text))
            .SqlState("42883")
            .At(expression.span)
            .Hint("SUM is the only one"));
  }
  if (expression.kind == Expression::Kind::kBinary &&
      (expression.text == "!=" || expression.text == "<>")) {
    errors->Add(InvalidArgument(fmt::format("{}: {} is not allowed in TO MAXIMIZE and TO MINIMIZE",
                                            parser::Print(expression), expression.text))
                    .At(expression.span)
                    .Hint("use <, <=, =, >= or >"));
  }
  for (const Expression& argument : expression.args) {
    CheckExpression(argument, errors);
  }
}

// "amount(product, plant)": a value `amount` for each pair; "product": a value for each product.
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
    // A single column's result is stored under a name of its own, next to the column.
    bound->result_column =
        bound->variables.size() == 1 ? bound->variables[0] : bound->variables[0] + "_value";
  }
  return OkStatus();
}

Status CheckSolver(const parser::OptimizeStatement& statement) {
  static const std::vector<std::string> kSolvers = {"glpk", "baron"};
  if (!statement.solver || std::find(kSolvers.begin(), kSolvers.end(),
                                     LowerAscii(statement.solver->text)) != kSolvers.end()) {
    return OkStatus();
  }
  const auto nearest = NearestName(statement.solver->text, kSolvers);
  return NotFound(fmt::format("unknown solver '{}'", statement.solver->text))
      .At(statement.solver->span)
      .Hint(nearest ? fmt::format("did you mean {}?", *nearest)
                    : fmt::format("there are {}", fmt::join(kSolvers, " and ")));
}

void CheckColumn(const std::string& name, Span span, const BoundOptimize& bound,
                 const ColumnIndex& columns, ErrorList* errors) {
  if (LowerAscii(name) != LowerAscii(bound.result_column) && !columns.Find(name)) {
    errors->Add(columns.Missing(name, span));
  }
}

void CheckColumns(const Expression& expression, const BoundOptimize& bound,
                  const ColumnIndex& columns, ErrorList* errors) {
  if (expression.kind == Expression::Kind::kName) {
    CheckColumn(expression.text, expression.span, bound, columns, errors);
  }
  for (const Expression& argument : expression.args) {
    CheckColumns(argument, bound, columns, errors);
  }
}

}  // namespace

Status CheckOptimize(const parser::OptimizeStatement& statement, catalog::DataSource& source) {
  ErrorList errors;
  const Result<BoundOptimize> bound = BindOptimize(statement);
  errors.Add(bound.status());
  const Result<BoundSelect> select = BindSelect(statement.select, source);
  errors.Add(select.status());
  if (!bound.ok() || !select.ok()) {
    return errors.Take();
  }
  const auto variables =
      std::find_if(statement.attributes.begin(), statement.attributes.end(),
                   [](const auto& own) { return LowerAscii(own.name.text) == "variables"; });
  for (const std::string& variable : bound->variables) {
    if (!select->columns.Find(variable)) {
      errors.Add(select->columns.Missing(variable, variables->value.span));
    }
  }
  CheckColumns(statement.objective, *bound, select->columns, &errors);
  for (const parser::OptimizeStatement::Constraint& constraint : statement.constraints) {
    CheckColumns(constraint.expression, *bound, select->columns, &errors);
    if (constraint.group_by && !select->columns.Find(constraint.group_by->text)) {
      errors.Add(select->columns.Missing(constraint.group_by->text, constraint.group_by->span));
    }
  }
  return errors.Take();
}

Result<BoundOptimize> BindOptimize(const parser::OptimizeStatement& statement) {
  ErrorList errors;
  AttributeSet attributes;
  errors.Add(AttributeSet::Bind(Attributes(), statement.maximize ? "TO MAXIMIZE" : "TO MINIMIZE",
                                statement.span, statement.attributes, &attributes));
  errors.Add(CheckSolver(statement));
  CheckExpression(statement.objective, &errors);
  for (const parser::OptimizeStatement::Constraint& constraint : statement.constraints) {
    CheckExpression(constraint.expression, &errors);
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
