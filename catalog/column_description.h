#pragma once

#include <string_view>

#include "base/row_batch.h"
#include "base/status.h"

// Columns in the form in which plans and datasets carry them to other processes.
namespace sluice::catalog {

class ColumnDescription;
class DatasetSpec;

ColumnInfo ColumnOf(const ColumnDescription& description);
void PutColumn(const ColumnInfo& column, ColumnDescription* description);

Schema SchemaOf(const DatasetSpec& spec);
// The index of a column in a dataset. NotFound (42703) names the nearest.
Result<size_t> FindColumn(const Schema& schema, std::string_view name);

}  // namespace sluice::catalog
