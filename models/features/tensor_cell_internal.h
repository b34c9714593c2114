#pragma once

#include <string>
#include <string_view>

#include "base/row_batch.h"
#include "base/status.h"
#include "models/features/cell_format.h"

// Reads the elements of a text cell that holds a tensor.
namespace sluice::models {

class TensorFormat;

inline bool IsText(const RowBatch::Column& column) {
  return column.type == DataType::kText || column.type == DataType::kBytes;
}

// A TensorFormat, checked and with its defaults filled in.
struct CellLayout {
  bool key_value = false;
  bool sparse = false;                    // csv: indices
  std::string delimiter = ",";            // "" = blanks
  std::string key_value_delimiter = ":";  // when key_value

  static Result<CellLayout> Make(const TensorFormat& format);
};

class CellCursor {
 public:
  CellCursor(std::string_view cell, const CellLayout& layout)
      : rest_(WithoutBrackets(cell)), delimiter_(layout.delimiter) {}

  // The next element without surrounding blanks; false at the end. One delimiter after the last
  // element is ignored; an empty element between two delimiters is returned as empty.
  bool Next(std::string_view* element) {
    if (rest_.empty()) {
      return false;
    }
    if (delimiter_.empty()) {
      const size_t end = rest_.find_first_of(" \t\n\r\f\v");
      *element = rest_.substr(0, end);
      rest_ = end == std::string_view::npos ? std::string_view() : TrimBlanks(rest_.substr(end));
      return true;
    }
    const size_t end = rest_.find(delimiter_);
    *element = TrimBlanks(rest_.substr(0, end));
    rest_ = end == std::string_view::npos ? std::string_view()
                                          : TrimBlanks(rest_.substr(end + delimiter_.size()));
    return true;
  }

 private:
  std::string_view rest_;
  std::string_view delimiter_;
};

// Splits "key:value"; false, with an empty value, if there is no delimiter.
inline bool SplitPair(std::string_view element, const CellLayout& layout, std::string_view* key,
                      std::string_view* value) {
  const size_t cut = element.find(layout.key_value_delimiter);
  *key = TrimBlanks(element.substr(0, cut));
  *value = cut == std::string_view::npos
               ? std::string_view()
               : TrimBlanks(element.substr(cut + layout.key_value_delimiter.size()));
  return cut != std::string_view::npos;
}

// InvalidArgument "column 'c': <problem>: '<cell>'", with the rows of such a cell as detail
// (base/bad_rows.h).
Status BadCell(std::string_view column, std::string_view cell, std::string_view problem);

}  // namespace sluice::models
