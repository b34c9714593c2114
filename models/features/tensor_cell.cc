#include <fmt/core.h>

#include <algorithm>

#include "models/features/tensor_cell_internal.h"
#include "models/model.pb.h"

namespace sluice::models {
namespace {

constexpr size_t kLongestQuote = 60;  // limit for a cell quoted in an error

}  // namespace

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

Status BadCell(std::string_view column, size_t row, std::string_view cell,
               std::string_view problem) {
  size_t cut = std::min(cell.size(), kLongestQuote);
  while (cut < cell.size() && cut > 0 && (static_cast<unsigned char>(cell[cut]) & 0xC0) == 0x80) {
    --cut;  // not inside a UTF-8 character
  }
  return InvalidArgument(fmt::format("column '{}': {}: '{}{}'", column, problem,
                                     cell.substr(0, cut), cut < cell.size() ? "..." : ""))
      .Detail(fmt::format("row {} of its batch", row + 1));
}

}  // namespace sluice::models
