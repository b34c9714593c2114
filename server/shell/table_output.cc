#include "server/shell/table_output.h"

#include <fmt/core.h>

#include <algorithm>

#include "server/config/terminal.h"

namespace sluice::server {
namespace {

// Rows held back to find the widths: a screen or a few, whatever the size of the result.
constexpr size_t kPageRows = 1'000;
// Fewer when they are so large together that no screen holds them.
constexpr size_t kPageBytes = 1 << 20;

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

}  // namespace

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    uint32_t c = length == 1 ? lead : lead & (0x7FU >> length);
    for (size_t k = 1; k < length && i + k < text.size(); ++k) {
      c = (c << 6U) | (static_cast<unsigned char>(text[i + k]) & 0x3FU);
    }
    width += IsWide(c) ? 2 : 1;
    i += length;
  }
  return width;
}

TablePrinter::TablePrinter(Write write) : write_(std::move(write)) {}

Status TablePrinter::Header(const Schema& schema) {
  schema_ = schema;
  widths_.clear();
  page_.clear();
  page_bytes_ = 0;
  rows_ = 0;
  header_printed_ = false;
  for (const ColumnInfo& column : schema.columns) {
    widths_.push_back(DisplayWidth(Printable(column.name)));
  }
  return OkStatus();
}

void TablePrinter::AddLine(std::vector<std::string> cells) {
  for (size_t c = 0; c < cells.size(); ++c) {
    widths_[c] = std::max(widths_[c], DisplayWidth(cells[c]));
    page_bytes_ += cells[c].size();
  }
  page_.push_back(std::move(cells));
}

// A JSON document by itself (EXPLAIN (FORMAT JSON)) is read by its lines.
void TablePrinter::AddDocument(const std::string& json) {
  for (size_t begin = 0; begin < json.size();) {
    const size_t end = std::min(json.find('\n', begin), json.size());
    AddLine({Printable(std::string_view(json).substr(begin, end - begin))});
    begin = end + 1;
  }
}

Status TablePrinter::Rows(const RowBatch& batch) {
  const bool documents =
      schema_.columns.size() == 1 && schema_.columns.front().database_type == "json";
  for (size_t r = 0; r < batch.rows; ++r) {
    if (documents) {
      AddDocument(CellText(batch.columns.front(), r));
    } else {
      std::vector<std::string> cells;
      cells.reserve(batch.columns.size());
      for (const RowBatch::Column& column : batch.columns) {
        cells.push_back(Printable(CellText(column, r)));
      }
      AddLine(std::move(cells));
    }
    ++rows_;
    if (page_.size() >= kPageRows || page_bytes_ >= kPageBytes) {
      RETURN_IF_ERROR(PrintPage());
    }
  }
  return OkStatus();
}

Status TablePrinter::Finish() {
  RETURN_IF_ERROR(PrintPage());
  return write_(fmt::format("({} {})\n\n", rows_, rows_ == 1 ? "row" : "rows"));
}

Status TablePrinter::PrintPage() {
  std::string text;
  if (!header_printed_) {
    header_printed_ = true;
    std::vector<std::string> names;
    for (const ColumnInfo& column : schema_.columns) {
      names.push_back(Printable(column.name));
    }
    AppendLine(names, true, text);
    for (size_t c = 0; c < widths_.size(); ++c) {
      text += (c == 0 ? "" : "+") + std::string(widths_[c] + 2, '-');
    }
    text += '\n';
  }
  for (const std::vector<std::string>& cells : page_) {
    AppendLine(cells, false, text);
  }
  page_.clear();
  page_bytes_ = 0;
  return write_(text);
}

void TablePrinter::AppendLine(const std::vector<std::string>& cells, bool centred,
                              std::string& text) const {
  std::string line;
  for (size_t c = 0; c < cells.size(); ++c) {
    const size_t space = widths_[c] - std::min(widths_[c], DisplayWidth(cells[c]));
    size_t left = 0;
    if (centred) {
      left = space / 2;
    } else if (HoldsNumbers(schema_.columns[c])) {
      left = space;
    }
    line +=
        (c == 0 ? " " : " | ") + std::string(left, ' ') + cells[c] + std::string(space - left, ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  text += line + '\n';
}

}  // namespace sluice::server
