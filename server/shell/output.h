#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::server {

enum class OutputFormat {
  kTable,  // aligned columns, numbers to the right, NULL empty, "(3 rows)" below
  kCsv,    // RFC 4180 with a header; NULL is empty, an empty text is ""
  // One object per line. Numbers are unquoted, numerics with every digit; NULL is null, and NaN and
  // infinities are text, as whatever else the database has.
  kJson,
};

// Whether a table shows each row as a line for each cell (\x).
enum class Expanded { kOff, kOn, kAuto };  // kAuto: where the terminal is too narrow

// Whose doubles have six significant digits in a table: what we have measured ourselves, never what
// the database says.
enum class Rounding { kNone, kProbabilities, kAll };

// How a table looks to a person; the other formats are for programs.
struct TableStyle {
  size_t columns = 0;  // of the terminal, which a table is folded to; 0: there is none
  Expanded expanded = Expanded::kOff;
  Rounding rounding = Rounding::kNone;
};

// "table", "csv", "json"; nullopt for anything else.
std::optional<OutputFormat> ParseOutputFormat(std::string_view name);

// Prints row sets. Not thread-safe.
class RowPrinter {
 public:
  using Write = std::function<Status(std::string_view text)>;

  static std::unique_ptr<RowPrinter> Make(OutputFormat format, Write write,
                                          const TableStyle& style = {});
  virtual ~RowPrinter() = default;
  virtual Status Header(const Schema& schema) = 0;
  virtual Status Rows(const RowBatch& batch) = 0;
  // Ends the row set and prints what is still held back.
  virtual Status Finish() = 0;
};

// True for columns of numbers, numerics (which arrive as text) among them.
bool HoldsNumbers(const ColumnInfo& column);
// A cell as CSV and table show it: what the database wrote, else FormatValue; bytes as \x and
// hexadecimal digits.
std::string CellText(const RowBatch::Column& column, size_t row);

}  // namespace sluice::server
