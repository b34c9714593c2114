#include "server/shell/table_layout.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/utf8.h"

namespace sluice::server {
namespace {

constexpr size_t kSeparator = 3;  // " | ", and a blank at each end of a line
// Texts are not folded below this width: a second block is easier to read.
constexpr size_t kNarrowest = 20;

bool IsWide(uint32_t c) {
  struct Range {
    uint32_t first, last;
  };
  // Unicode's East Asian Wide and Fullwidth blocks, coarsely.
  static constexpr Range kWide[] = {{0x1100, 0x115F}, {0x2E80, 0xA4CF},   {0xAC00, 0xD7A3},
                                    {0xF900, 0xFAFF}, {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
                                    {0xFFE0, 0xFFE6}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};
  return std::any_of(std::begin(kWide), std::end(kWide),
                     [c](const Range& range) { return c >= range.first && c <= range.last; });
}

// Bytes and columns of the character at text[i].
std::pair<size_t, size_t> Character(std::string_view text, size_t i) {
  const auto [code, bytes] = CharacterAt(text, i);
  return {std::max<size_t>(bytes, 1), IsWide(code) ? 2 : 1};
}

size_t TotalWidth(const std::vector<size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), size_t{0}) + kSeparator * widths.size() - 1;
}

// Shrinks the widest columns that may still shrink until the line fits; false: it does not fit.
bool Shrink(const std::vector<ColumnWidth>& table, size_t columns, std::vector<size_t>* widths) {
  while (TotalWidth(*widths) > columns) {
    size_t widest = widths->size();
    for (size_t i = 0; i < widths->size(); ++i) {
      const size_t least = std::max(table[i].name, kNarrowest);
      if (table[i].folds && (*widths)[i] > least &&
          (widest == widths->size() || (*widths)[i] > (*widths)[widest])) {
        widest = i;
      }
    }
    if (widest == widths->size()) {
      return false;
    }
    --(*widths)[widest];
  }
  return true;
}

}  // namespace

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  for (size_t i = 0; i < text.size();) {
    const auto [bytes, columns] = Character(text, i);
    width += columns;
    i += bytes;
  }
  return width;
}

std::vector<std::string> FoldText(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  while (!text.empty() || lines.empty()) {
    size_t used = 0;
    size_t end = 0;
    size_t blank = 0;  // after the last one that fits
    size_t blank_used = 0;
    while (end < text.size()) {
      const auto [bytes, columns] = Character(text, end);
      if (used + columns > width && end > 0) {
        break;
      }
      used += columns;
      end += bytes;
      if (text[end - 1] == ' ') {
        blank = end;
        blank_used = used;
      }
    }
    end = std::min(end, text.size());
    if (end < text.size() && text[end] != ' ' && blank_used * 2 > width) {
      end = blank;
    }
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
    if (const size_t begin = text.find_first_not_of(' '); begin != std::string_view::npos) {
      text.remove_prefix(begin);
    } else {
      text = {};
    }
  }
  return lines;
}

std::vector<TableBlock> LayOutTable(const std::vector<ColumnWidth>& table, size_t columns) {
  std::vector<size_t> widths;
  widths.reserve(table.size());
  for (const ColumnWidth& column : table) {
    widths.push_back(column.widest);
  }
  if (table.empty() || columns == 0 || TotalWidth(widths) <= columns) {
    return {{0, widths}};
  }
  std::vector<size_t> shrunk;
  shrunk.reserve(table.size());
  for (const ColumnWidth& column : table) {
    shrunk.push_back(column.folds ? std::min(column.widest, columns) : column.widest);
  }
  if (Shrink(table, columns, &shrunk)) {
    return {{0, shrunk}};
  }
  std::vector<TableBlock> blocks;
  const size_t widest = columns > kSeparator ? columns - kSeparator + 1 : 1;
  for (size_t i = 0; i < table.size(); ++i) {
    const size_t width = std::min(widths[i], widest);
    if (!blocks.empty() && TotalWidth(blocks.back().widths) + kSeparator + width <= columns) {
      blocks.back().widths.push_back(width);
    } else {
      blocks.push_back({i, {width}});
    }
  }
  return blocks;
}

}  // namespace sluice::server
