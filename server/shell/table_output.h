#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/shell/output.h"
#include "server/shell/table_layout.h"

namespace sluice::server {

// Aligned columns for people, or a line for each cell (\x). Widths come from the first page of
// rows; later pages may widen them.
class TablePrinter final : public RowPrinter {
 public:
  TablePrinter(Write write, const TableStyle& style);
  Status Header(const Schema& schema) override;
  Status Rows(const RowBatch& batch) override;
  Status Finish() override;

 private:
  using Cells = std::vector<std::string>;
  std::string ShownCell(const RowBatch::Column& column, size_t row, bool rounded) const;
  bool IsRounded(size_t column) const;
  void AddLine(Cells cells);
  void AddDocument(const std::string& json);
  Status PrintPage();
  // Whether the page's rows are shown as a line for each cell.
  bool IsExpanded(const std::vector<TableBlock>& blocks) const;
  void AppendExpanded(std::string& text);
  void AppendHead(const TableBlock& block, std::string& text) const;
  void AppendRow(const Cells& cells, const TableBlock& block, bool centred,
                 std::string& text) const;
  bool HoldsDocuments() const;

  Write write_;
  const TableStyle style_;
  Schema schema_;
  std::vector<std::string> names_;
  std::vector<ColumnWidth> widths_;
  std::vector<Cells> page_;
  size_t page_bytes_ = 0;
  size_t rows_ = 0;
  size_t records_ = 0;  // shown expanded
  bool header_printed_ = false;
};

}  // namespace sluice::server
