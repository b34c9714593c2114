#include "planner/bind_select.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "catalog/data_source.h"
#include "planner/error_list.h"
#include "planner/letter_case.h"

namespace sluice::planner {
namespace {

// The spans of a database's errors count from the SELECT's first byte.
Status IntoScript(const Status& status, const parser::Select& select) {
  Status shifted;
  for (const Diagnostic& diagnostic : status.diagnostics()) {
    const Span span = diagnostic.span.valid() ? Span{diagnostic.span.begin + select.span.begin,
                                                     diagnostic.span.end + select.span.begin}
                                              : select.span;
    shifted.Add(Status(diagnostic.code, diagnostic.message)
                    .SqlState(diagnostic.sqlstate)
                    .At(span)
                    .Detail(diagnostic.detail)
                    .Hint(diagnostic.hint));
  }
  return shifted;
}

// Names that differ only in case count as one: a feature, a result column and a COLUMN clause find
// columns in any case.
Status CheckDistinctNames(const Schema& schema, Span span) {
  ErrorList errors;
  std::unordered_map<std::string, int> seen;
  for (const ColumnInfo& column : schema.columns) {
    if (++seen[LowerCase(column.name)] == 2) {
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
    return IntoScript(schema.status(), select);
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
  if (bound.ok()) {
    bound->span = place;
    return bound;
  }
  Status status;
  for (const Diagnostic& diagnostic : bound.status().diagnostics()) {
    status.Add(Status(diagnostic.code, diagnostic.message)
                   .SqlState(diagnostic.sqlstate)
                   .At(place)
                   .Detail(diagnostic.detail)
                   .Hint(diagnostic.hint)
                   .Because("validation.select"));
  }
  return status;
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
