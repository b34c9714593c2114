#include "catalog/sql/value_expression.h"

#include <fmt/core.h>

namespace sluice::catalog {
namespace {

bool IsArray(std::string_view type) {
  return type.ends_with("[]");
}
bool IsInterval(std::string_view type) {
  return type.starts_with("interval") && !IsArray(type);
}
bool IsFilledWithBlanks(std::string_view type) {
  return type == "bpchar" || type == "character" ||
         (type.starts_with("character(") && !IsArray(type));
}

}  // namespace

std::string ValueExpression(std::string_view column, std::string_view type) {
  if (type == "money") {
    return fmt::format("{}::pg_catalog.numeric", column);
  }
  if (IsInterval(type)) {
    return fmt::format("pg_catalog.date_part('epoch', {})", column);
  }
  return IsFilledWithBlanks(type) ? fmt::format("{}::pg_catalog.text", column) : "";
}

bool IsNumberShownAsText(std::string_view type) {
  return type == "money" || IsInterval(type);
}

}  // namespace sluice::catalog
