#pragma once

#include "base/status.h"
#include "catalog/sql/table_name.h"
#include "parser/ast.h"
#include "planner/attributes.h"
#include "planner/bind_select.h"

namespace sluice::plan {
class ResultTable;
}

namespace sluice::planner {

// [schema.]table from the first `parts` parts of a name, in the database's spelling.
Result<catalog::TableName> ReadTableName(const parser::Name& name, size_t parts,
                                         const catalog::DataSource& source);

// One part of a name, in the database's spelling.
std::string ReadNamePart(const parser::Name& name, size_t part, const catalog::DataSource& source);

// Where a statement's rows go: the table, and what will be done with it. Tables that must not be
// written are refused here, before anything is read: one that the SELECT reads, one that is not a
// result table of Sluice (without result.replace and result.append), the catalog ... `columns`: of
// the result, null if they are not known before execution.
Status BindResultTable(const parser::Name& name, size_t parts, const AttributeSet& attributes,
                       const BoundSelect& select, const Schema* columns,
                       catalog::DataSource& source, plan::ResultTable* table);

// Refuses result.replace and result.append in a statement that writes no table.
Status RefuseResultAttributes(const AttributeSet& attributes, std::string_view how_to_name_one);

}  // namespace sluice::planner
