#include "planner/bind_result.h"

#include <fmt/core.h>

#include <algorithm>

#include "catalog/data_source.h"
#include "planner/plan.pb.h"

namespace sluice::planner {
namespace {

constexpr std::string_view kReplace = "result.replace";
constexpr std::string_view kAppend = "result.append";

}  // namespace

std::string ReadNamePart(const parser::Name& name, size_t part, const catalog::DataSource& source) {
  return name.IsQuoted(part) ? name.parts.at(part) : source.Fold(name.parts.at(part));
}

Result<catalog::TableName> ReadTableName(const parser::Name& name, size_t parts,
                                         const catalog::DataSource& source) {
  const bool empty = std::any_of(name.parts.begin(), name.parts.end(),
                                 [](const std::string& part) { return part.empty(); });
  if (parts == 0 || parts > 2 || empty) {
    return SyntaxError(fmt::format("'{}' names no table", name.text))
        .At(name.span)
        .Hint("a table is named [schema.]table; quote a name that holds a dot");
  }
  catalog::TableName table;
  table.name = ReadNamePart(name, parts - 1, source);
  if (parts == 2) {
    table.schema = ReadNamePart(name, 0, source);
  }
  return table;
}

Status BindResultTable(const parser::Name& name, size_t parts, const AttributeSet& attributes,
                       const BoundSelect& select, const Schema* columns,
                       catalog::DataSource& source, plan::ResultTable* table) {
  catalog::ResultTable wanted;
  wanted.replace = attributes.Flag(kReplace).value_or(false);
  wanted.append = attributes.Flag(kAppend).value_or(false);
  if (wanted.replace && wanted.append) {
    return InvalidArgument("result.replace and result.append exclude each other")
        .At(attributes.SpanOf(kAppend));
  }
  if (columns != nullptr && columns->columns.size() > source.most_columns()) {
    return Status(Code::kResourceExhausted,
                  fmt::format("the result has {} columns, and a table has at most {}",
                              columns->columns.size(), source.most_columns()))
        .SqlState("54011")
        .At(name.span)
        .Hint("WITH predict.keep=[...] names those selected columns that it is to have");
  }
  ASSIGN_OR_RETURN(wanted.name, ReadTableName(name, parts, source));
  ASSIGN_OR_RETURN(const auto existing, source.ResolveTable(wanted.name));
  if (existing) {
    ASSIGN_OR_RETURN(const auto tables, source.SourceTables(select.text));
    if (std::find(tables.begin(), tables.end(), *existing) != tables.end()) {
      return InvalidArgument(
                 fmt::format("the result table {} is also read by the SELECT", existing->Text()))
          .At(name.span)
          .Hint("write the result to another table");
    }
  }
  const Result<catalog::ResultPlan> planned = source.PlanResultTable(wanted, columns);
  if (!planned.ok()) {
    return planned.status().MovedTo(name.span);
  }
  table->set_schema(planned->name.schema);
  table->set_name(planned->name.name);
  table->set_schema_written(!wanted.name.schema.empty());
  table->set_action(static_cast<int32_t>(planned->action));
  table->set_replace(wanted.replace);
  table->set_append(wanted.append);
  table->set_place_begin(name.span.begin);
  table->set_place_end(name.span.end);
  return OkStatus();
}

Status RefuseResultAttributes(const AttributeSet& attributes, std::string_view how_to_name_one) {
  Status errors;
  for (const std::string_view name : {kReplace, kAppend}) {
    if (attributes.Flag(name).value_or(false)) {
      errors.Add(
          InvalidArgument(fmt::format("{} is about a table, and this statement writes none", name))
              .At(attributes.SpanOf(name))
              .Hint(fmt::format("name one: {}", how_to_name_one)));
    }
  }
  return errors;
}

}  // namespace sluice::planner
