#include <fmt/core.h>

#include "base/bad_rows.h"
#include "models/features/tensor_cell_internal.h"
#include "models/model.pb.h"

namespace sluice::models {

Result<CellLayout> CellLayout::Make(const TensorFormat& format) {
  CellLayout layout;
  layout.key_value = format.kind() == TensorFormat::KEY_VALUE;
  layout.sparse = format.sparse();
  if (layout.key_value) {
    layout.delimiter = format.delimiter();
    if (!format.key_value_delimiter().empty()) {
      layout.key_value_delimiter = format.key_value_delimiter();
    }
    if (layout.delimiter == layout.key_value_delimiter) {
      return InvalidArgument(
          fmt::format("'{}' cannot stand both between pairs and inside of them", layout.delimiter));
    }
  } else {
    layout.delimiter = format.delimiter();
    // A csv format without a delimiter uses commas; blanks have to be requested by " ".
    if (layout.delimiter.empty()) {
      layout.delimiter = ",";
    }
  }
  if (!layout.delimiter.empty() && TrimBlanks(layout.delimiter).empty()) {
    layout.delimiter.clear();
  }
  return layout;
}

Status BadCell(std::string_view column, std::string_view cell, std::string_view problem) {
  return InvalidArgument(fmt::format("column '{}': {}: {}", column, problem, QuotedCell(cell)))
      .Detail(RowsWithText(column, cell));
}

}  // namespace sluice::models
