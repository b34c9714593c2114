#include "planner/same_columns.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/letter_case.h"
#include "parser/parser.h"
#include "parser/printer.h"
#include "planner/column_spec.h"
#include "planner/column_target.h"
#include "planner/plan.pb.h"

namespace sluice::planner {
namespace {

struct Written {
  std::string text;  // as written
  Span span;
};
// Requested columns, by a canonical spelling of their meaning.
using Columns = std::map<std::string, Written>;

std::string MeaningOf(const ColumnSpec& spec) {
  std::vector<std::string> inner;
  for (const ColumnSpec& part : spec.inner) {
    inner.push_back(MeaningOf(part));
  }
  return fmt::format("{}({} {} {} {:?} {:?} {} {} {} {} {} {:?} {:?} [{}])",
                     static_cast<int>(spec.kind), LowerAscii(spec.name), spec.pattern,
                     fmt::join(spec.shape, ","), spec.delimiter, spec.key_value_delimiter,
                     static_cast<int>(spec.element), spec.weighted_elements,
                     fmt::join(spec.boundaries, ","), spec.buckets, spec.dimension, spec.combiner,
                     spec.initializer, fmt::join(inner, " "));
}

bool IsPlain(const ColumnSpec& spec) {
  return spec.kind == ColumnSpec::Kind::kName || spec.kind == ColumnSpec::Kind::kStar;
}

// With one target COLUMN only refines, so a plain name just means that the column is selected.
bool OneTarget(const std::vector<parser::ColumnClause>& clauses) {
  std::set<std::string> targets;
  for (const parser::ColumnClause& clause : clauses) {
    targets.insert(TargetOf(clause));
  }
  return targets.size() <= 1;
}

// Columns that cannot be read were already reported.
Columns ColumnsOf(const std::vector<parser::ColumnClause>& clauses, bool with_plain) {
  Columns columns;
  for (const parser::ColumnClause& clause : clauses) {
    for (const parser::Expression& expression : clause.columns) {
      const Result<ColumnSpec> spec = ReadColumn(expression);
      if (spec.ok() && (with_plain || !IsPlain(*spec))) {
        const std::string target = clause.target ? fmt::format(" FOR {}", clause.target->text) : "";
        columns.emplace(TargetOf(clause) + MeaningOf(*spec),
                        Written{parser::Print(expression) + target, expression.span});
      }
    }
  }
  return columns;
}

std::vector<parser::ColumnClause> ReadClauses(const std::string& statement) {
  Result<std::vector<parser::Statement>> parsed = parser::Parse(statement);
  if (!parsed.ok() || parsed->size() != 1) {
    return {};
  }
  const auto* train = std::get_if<parser::TrainStatement>(&parsed->front());
  return train == nullptr ? std::vector<parser::ColumnClause>() : train->columns;
}

// Plain names that the model does not know.
void FindUnknownNames(const std::vector<parser::ColumnClause>& clauses,
                      const models::FeaturePlan& features, std::vector<Written>* unknown) {
  for (const parser::ColumnClause& clause : clauses) {
    for (const parser::Expression& expression : clause.columns) {
      const Result<ColumnSpec> spec = ReadColumn(expression);
      const bool known =
          !spec.ok() || spec->kind != ColumnSpec::Kind::kName ||
          std::any_of(features.inputs().begin(), features.inputs().end(), [&](const auto& input) {
            return LowerAscii(input.name()) == LowerAscii(spec->name);
          });
      if (!known) {
        unknown->push_back({parser::Print(expression), expression.span});
      }
    }
  }
}

std::string ListOf(const std::vector<Written>& columns) {
  std::vector<std::string> texts;
  texts.reserve(columns.size());
  for (const Written& column : columns) {
    texts.push_back(column.text);
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::vector<Written> Without(const Columns& columns, const Columns& others) {
  std::vector<Written> left;
  for (const auto& [meaning, written] : columns) {
    if (others.find(meaning) == others.end()) {
      left.push_back(written);
    }
  }
  return left;
}

}  // namespace

std::vector<std::string> PrintColumns(const std::vector<parser::ColumnClause>& clauses) {
  std::vector<std::string> printed;
  for (const parser::ColumnClause& clause : clauses) {
    std::vector<std::string> columns;
    for (const parser::Expression& expression : clause.columns) {
      columns.push_back(parser::Print(expression));
    }
    printed.push_back(fmt::format("COLUMN {}{}", fmt::join(columns, ", "),
                                  clause.target ? " FOR " + clause.target->text : ""));
  }
  return printed;
}

std::vector<std::string> TrainedColumns(const plan::TrainPlan& learnt) {
  if (!learnt.columns().empty()) {
    return {learnt.columns().begin(), learnt.columns().end()};
  }
  return PrintColumns(ReadClauses(learnt.statement()));
}

Status CheckSameColumns(const std::vector<parser::ColumnClause>& clauses,
                        const plan::TrainPlan& learnt) {
  const std::vector<std::string> printed = TrainedColumns(learnt);
  const std::vector<parser::ColumnClause> others =
      ReadClauses(fmt::format("SELECT 1 TO TRAIN type {} INTO model", fmt::join(printed, " ")));
  const bool one_target = OneTarget(clauses) && OneTarget(others);
  const Columns asked = ColumnsOf(clauses, !one_target);
  const Columns had = ColumnsOf(others, !one_target);
  std::vector<Written> added = Without(asked, had);
  const std::vector<Written> missing = Without(had, asked);
  if (one_target) {
    FindUnknownNames(clauses, learnt.model().features(), &added);
  }
  if (added.empty() && missing.empty()) {
    return OkStatus();
  }
  std::string differs;
  if (!added.empty()) {
    differs = fmt::format("it knows nothing of {}", ListOf(added));
  }
  if (!missing.empty()) {
    differs += fmt::format("{}it has {}", differs.empty() ? "" : ", and ", ListOf(missing));
  }
  return InvalidArgument(
             fmt::format("the model to continue from learnt from other columns: {}", differs))
      .At(added.empty() ? clauses.front().span : added.front().span)
      .Hint("leave COLUMN out: a training that continues from a model takes over its features");
}

}  // namespace sluice::planner
