#pragma once

#include "base/row_batch.h"

// A column as plans and datasets carry it to other processes.
namespace sluice::catalog {

class ColumnDescription;

ColumnInfo ColumnOf(const ColumnDescription& description);
void PutColumn(const ColumnInfo& column, ColumnDescription* description);

}  // namespace sluice::catalog
