#include "planner/bind_select.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "base/letter_case.h"
#include "catalog/data_source.h"
#include "planner/error_list.h"

namespace sluice::planner {
namespace {

// Names that differ only in case count as equal: features, result columns and COLUMN clauses find
// columns in any case.
Status CheckDistinctNames(const Schema& schema, Span span) {
  ErrorList errors;
  std::unordered_map<std::string, int> seen;
  for (const ColumnInfo& column : schema.columns) {
    if (++seen[LowerAscii(column.name)] == 2) {
      errors.Add(InvalidArgument(fmt::format("the SELECT has two columns named '{}'", column.name))
                     .SqlState("42701")
                     .At(span)
                     .Hint("give one of them another name with AS, or leave it out"));
    }
  }
  return errors.Take();
}

}  // namespace

Result<BoundSelect> BindSelect(const parser::Select& select, catalog::DataSource& source) {
  Result<Schema> schema = source.Describe(select.text);
  if (!schema.ok()) {
    return schema.status().Within(select.span);
  }
  if (schema->columns.empty()) {
    return InvalidArgument("the SELECT has no columns").At(select.span);
  }
  RETURN_IF_ERROR(CheckDistinctNames(*schema, select.span));
  BoundSelect bound;
  bound.text = select.text;
  bound.span = select.span;
  bound.schema = std::move(schema).value();
  bound.columns = ColumnIndex(bound.schema);
  return bound;
}

Result<BoundSelect> BindSelectText(std::string_view select, Span place,
                                   catalog::DataSource& source) {
  parser::Select text;
  text.text = select;
  Result<BoundSelect> bound = BindSelect(text, source);
  if (!bound.ok()) {
    return bound.status().MovedTo(place).Because("validation.select");
  }
  bound->span = place;
  return bound;
}

std::string QuoteIdentifier(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) {
    quoted += c;
    if (c == '"') {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace sluice::planner
