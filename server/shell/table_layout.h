#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::server {

// Columns that `text` takes on a terminal (East Asian wide characters take two).
size_t DisplayWidth(std::string_view text);

// The text in lines of at most `width`: cut at blanks where that leaves no line half empty.
std::vector<std::string> FoldText(std::string_view text, size_t width);

// What a table needs of the terminal.
struct ColumnWidth {
  size_t name = 0;    // of its name
  size_t widest = 0;  // of its name and cells
  bool folds = true;  // numbers are not cut
};

// Columns that are shown beside each other, each as wide as it says.
struct TableBlock {
  size_t first = 0;
  std::vector<size_t> widths;
};

// How a table fits `columns` of a terminal: in one block, with long texts folded inside their
// columns where that is enough, else in several blocks below each other. 0: no terminal, one block.
std::vector<TableBlock> LayOutTable(const std::vector<ColumnWidth>& table, size_t columns);

}  // namespace sluice::server
