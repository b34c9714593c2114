#include "catalog/column_description.h"

#include "catalog/dataset.pb.h"

namespace sluice::catalog {

ColumnInfo ColumnOf(const ColumnDescription& description) {
  ColumnInfo column;
  column.name = description.name();
  column.type = static_cast<DataType>(description.type());
  column.database_type = description.database_type();
  if (description.has_declaration()) {
    column.declaration = description.declaration();
  }
  return column;
}

void PutColumn(const ColumnInfo& column, ColumnDescription* description) {
  description->set_name(column.name);
  description->set_type(static_cast<int>(column.type));
  description->set_database_type(column.database_type);
  if (column.declaration.has_value()) {
    description->set_declaration(*column.declaration);
  }
}

}  // namespace sluice::catalog
