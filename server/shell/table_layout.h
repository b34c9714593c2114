#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::server {

// Columns that `text` takes on a terminal (East Asian wide characters take two).
size_t DisplayWidth(std::string_view text);

// The text in lines of at most `width`: broken at blanks, unless that would leave a line half
// empty.
std::vector<std::string> FoldText(std::string_view text, size_t width);

// The widths of a table's column.
struct ColumnWidth {
  size_t name = 0;    // of its name
  size_t widest = 0;  // of its name and cells
  bool folds = true;  // false for numbers, which are not cut
};

// Columns that are shown side by side, each with its width.
struct TableBlock {
  size_t first = 0;
  std::vector<size_t> widths;
};

// How a table fits into `columns` of a terminal: in one block, folding long texts within their
// columns if that suffices, else in several blocks below each other. 0: no terminal, one block.
std::vector<TableBlock> LayOutTable(const std::vector<ColumnWidth>& table, size_t columns);

}  // namespace sluice::server
