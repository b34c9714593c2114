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

// [schema.]table out of the first `parts` parts of a name, as the database stores it.
Result<catalog::TableName> ReadTableName(const parser::Name& name, size_t parts,
                                         const catalog::DataSource& source);

// One part of a name, as the database stores it.
std::string ReadNamePart(const parser::Name& name, size_t part, const catalog::DataSource& source);

// Where a statement's rows go: the table, and what will become of it. What must not be written is
// refused here, before anything is read: a table that the SELECT reads, one that is not Sluice's
// own result (without result.replace and result.append), the catalog ... `columns`: of the result,
// null where only the execution knows them.
Status BindResultTable(const parser::Name& name, size_t parts, const AttributeSet& attributes,
                       const BoundSelect& select, const Schema* columns,
                       catalog::DataSource& source, plan::ResultTable* table);

// result.replace and result.append of a statement that writes no table.
Status RefuseResultAttributes(const AttributeSet& attributes, std::string_view how_to_name_one);

}  // namespace sluice::planner
