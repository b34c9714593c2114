#include "catalog/column_description.h"

#include <fmt/core.h>

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
  if (description.has_wire()) {
    const ColumnDescription::Wire& wire = description.wire();
    column.wire = {wire.oid(), static_cast<int16_t>(wire.bytes()), wire.modifier(), wire.send()};
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
  if (column.wire.has_value()) {
    ColumnDescription::Wire* wire = description->mutable_wire();
    wire->set_oid(column.wire->oid);
    wire->set_bytes(column.wire->bytes);
    wire->set_modifier(column.wire->modifier);
    wire->set_send(column.wire->send);
  }
}

Schema SchemaOf(const DatasetSpec& spec) {
  Schema schema;
  for (const ColumnDescription& column : spec.columns()) {
    schema.columns.push_back(ColumnOf(column));
  }
  return schema;
}

Result<size_t> FindColumn(const Schema& schema, std::string_view name) {
  if (const auto found = schema.Find(name)) {
    return *found;
  }
  Status status = ColumnNotFound(fmt::format("the select has no column '{}'", name));
  if (const auto near = NearestName(std::string(name), schema.Names())) {
    status = std::move(status).Hint(fmt::format("did you mean '{}'?", *near));
  }
  return status;
}

}  // namespace sluice::catalog
