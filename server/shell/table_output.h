#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/shell/output.h"

namespace sluice::server {

// Aligned columns for people. Widths come from the first page of rows; later pages may widen them.
class TablePrinter final : public RowPrinter {
 public:
  explicit TablePrinter(Write write);
  Status Header(const Schema& schema) override;
  Status Rows(const RowBatch& batch) override;
  Status Finish() override;

 private:
  void AddLine(std::vector<std::string> cells);
  void AddDocument(const std::string& json);
  Status PrintPage();
  void AppendLine(const std::vector<std::string>& cells, bool centred, std::string& text) const;

  Write write_;
  Schema schema_;
  std::vector<size_t> widths_;
  std::vector<std::vector<std::string>> page_;
  size_t page_bytes_ = 0;
  size_t rows_ = 0;
  bool header_printed_ = false;
};

// Columns that `text` takes on a terminal (East Asian wide characters take two).
size_t DisplayWidth(std::string_view text);

}  // namespace sluice::server
