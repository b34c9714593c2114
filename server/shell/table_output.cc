#include "server/shell/table_output.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "server/config/terminal.h"

namespace sluice::server {
namespace {

// Rows held back to find the widths: a few screens, whatever the size of the result.
constexpr size_t kPageRows = 1'000;
// Fewer rows if they are large.
constexpr size_t kPageBytes = 1 << 20;
// Rows per group if a table needs several blocks, so that the blocks of a row stay close together.
constexpr size_t kBlockRows = 20;

// Six significant digits, as in metrics; no exponent for a number that reads well without one.
std::string RoundedDouble(double value) {
  constexpr double kAllDigits = 1e6;
  constexpr double kExponent = 1e15;
  const double size = std::fabs(value);
  return size >= kAllDigits && size < kExponent ? fmt::format("{:.0f}", value)
                                                : fmt::format("{:.6g}", value);
}

std::string Padded(const std::string& cell, size_t width, size_t left) {
  const size_t space = width - std::min(width, DisplayWidth(cell));
  left = std::min(left, space);
  return std::string(left, ' ') + cell + std::string(space - left, ' ');
}

void AppendTrimmed(std::string line, std::string& text) {
  line.erase(line.find_last_not_of(' ') + 1);
  text += line + '\n';
}

}  // namespace

TablePrinter::TablePrinter(Write write, const TableStyle& style)
    : write_(std::move(write)), style_(style) {}

Status TablePrinter::Header(const Schema& schema) {
  schema_ = schema;
  names_.clear();
  widths_.clear();
  page_.clear();
  page_bytes_ = 0;
  rows_ = 0;
  records_ = 0;
  header_printed_ = false;
  for (const ColumnInfo& column : schema.columns) {
    names_.push_back(Printable(column.name));
    const size_t width = DisplayWidth(names_.back());
    widths_.push_back({width, width, !HoldsNumbers(column)});
  }
  return OkStatus();
}

bool TablePrinter::HoldsDocuments() const {
  return schema_.columns.size() == 1 && schema_.columns.front().database_type == "json";
}

bool TablePrinter::IsRounded(size_t column) const {
  return style_.rounding == Rounding::kAll ||
         (style_.rounding == Rounding::kProbabilities &&
          schema_.columns[column].name.starts_with("probability"));
}

std::string TablePrinter::ShownCell(const RowBatch::Column& column, size_t row,
                                    bool rounded) const {
  if (rounded && column.null[row] == 0 && column.TypeAt(row) == DataType::kDouble) {
    return RoundedDouble(column.doubles[row]);
  }
  return Printable(CellText(column, row));
}

void TablePrinter::AddLine(Cells cells) {
  for (size_t c = 0; c < cells.size(); ++c) {
    widths_[c].widest = std::max(widths_[c].widest, DisplayWidth(cells[c]));
    page_bytes_ += cells[c].size();
  }
  page_.push_back(std::move(cells));
}

// A single JSON document (EXPLAIN (FORMAT JSON)) is printed line by line.
void TablePrinter::AddDocument(const std::string& json) {
  for (size_t begin = 0; begin < json.size();) {
    const size_t end = std::min(json.find('\n', begin), json.size());
    AddLine({Printable(std::string_view(json).substr(begin, end - begin))});
    begin = end + 1;
  }
}

Status TablePrinter::Rows(const RowBatch& batch) {
  for (size_t r = 0; r < batch.rows; ++r) {
    if (HoldsDocuments()) {
      AddDocument(CellText(batch.columns.front(), r));
    } else {
      Cells cells;
      cells.reserve(batch.columns.size());
      for (size_t c = 0; c < batch.columns.size(); ++c) {
        cells.push_back(ShownCell(batch.columns[c], r, IsRounded(c)));
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

bool TablePrinter::IsExpanded(const std::vector<TableBlock>& blocks) const {
  return !page_.empty() && !HoldsDocuments() &&
         (style_.expanded == Expanded::kOn ||
          (style_.expanded == Expanded::kAuto && blocks.size() > 1));
}

Status TablePrinter::PrintPage() {
  if (page_.empty() && header_printed_) {
    return OkStatus();
  }
  std::string text;
  // A document is copied as it is; the terminal folds its lines.
  const std::vector<TableBlock> blocks =
      LayOutTable(widths_, HoldsDocuments() ? 0 : style_.columns);
  if (records_ > 0 || IsExpanded(blocks)) {
    AppendExpanded(text);
  } else if (blocks.size() == 1) {
    if (!header_printed_) {
      AppendHead(blocks.front(), text);
    }
    for (const Cells& cells : page_) {
      AppendRow(cells, blocks.front(), false, text);
    }
  } else {
    for (size_t first = 0; first < std::max<size_t>(page_.size(), 1); first += kBlockRows) {
      for (const TableBlock& block : blocks) {
        AppendHead(block, text);
        for (size_t r = first; r < std::min(page_.size(), first + kBlockRows); ++r) {
          AppendRow(page_[r], block, false, text);
        }
        text += '\n';
      }
    }
  }
  header_printed_ = true;
  page_.clear();
  page_bytes_ = 0;
  return write_(text);
}

void TablePrinter::AppendHead(const TableBlock& block, std::string& text) const {
  AppendRow(names_, block, true, text);
  for (size_t c = 0; c < block.widths.size(); ++c) {
    text += (c == 0 ? "" : "+") + std::string(block.widths[c] + 2, '-');
  }
  text += '\n';
}

void TablePrinter::AppendRow(const Cells& cells, const TableBlock& block, bool centred,
                             std::string& text) const {
  std::vector<std::vector<std::string>> folded;
  size_t lines = 1;
  for (size_t c = 0; c < block.widths.size(); ++c) {
    const std::string& cell = cells[block.first + c];
    folded.push_back(DisplayWidth(cell) <= block.widths[c] ? Cells{cell}
                                                           : FoldText(cell, block.widths[c]));
    lines = std::max(lines, folded.back().size());
  }
  for (size_t l = 0; l < lines; ++l) {
    std::string line;
    for (size_t c = 0; c < block.widths.size(); ++c) {
      const std::string cell = l < folded[c].size() ? folded[c][l] : "";
      const size_t width = block.widths[c];
      const size_t space = width - std::min(width, DisplayWidth(cell));
      const bool right = HoldsNumbers(schema_.columns[block.first + c]);
      line += (c == 0 ? " " : " | ") + Padded(cell, width, centred ? space / 2 : right ? space : 0);
    }
    AppendTrimmed(std::move(line), text);
  }
}

void TablePrinter::AppendExpanded(std::string& text) {
  size_t name = 0;
  size_t widest = 0;
  for (const ColumnWidth& column : widths_) {
    name = std::max(name, column.name);
    widest = std::max(widest, column.widest);
  }
  if (style_.columns > name + 20) {
    widest = std::min(widest, style_.columns - name - 3);
  }
  for (const Cells& cells : page_) {
    const std::string head = fmt::format("-[ RECORD {} ]", ++records_);
    const size_t line = name + 1 + 1 + 1 + widest;
    text += head + std::string(line > head.size() ? line - head.size() : 0, '-') + '\n';
    for (size_t c = 0; c < cells.size(); ++c) {
      std::string label = Padded(names_[c], name, 0);
      for (const std::string& part :
           DisplayWidth(cells[c]) <= widest ? Cells{cells[c]} : FoldText(cells[c], widest)) {
        AppendTrimmed(fmt::format("{} | {}", label, part), text);
        label.assign(name, ' ');
      }
    }
  }
}

}  // namespace sluice::server
