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
  // One object per line. Numbers are unquoted, numerics have every digit; NULL is null; NaN,
  // infinities and values of all other database types are strings.
  kJson,
};

// Whether a table prints one line per cell (\x).
enum class Expanded { kOff, kOn, kAuto };  // kAuto: if the terminal is too narrow

// Which doubles a table rounds to six significant digits: those that we computed, never those from
// the database.
enum class Rounding { kNone, kProbabilities, kAll };

// How a table looks to people; the other formats are for programs.
struct TableStyle {
  size_t columns = 0;  // of the terminal that a table is folded to; 0: not a terminal
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
  // Ends the row set and prints everything that was held back.
  virtual Status Finish() = 0;
};

// Whether the column holds numbers, including numerics (which arrive as text).
bool HoldsNumbers(const ColumnInfo& column);
// A cell as CSV and table print it: as the database wrote it, else FormatValue; bytes as \x and
// hexadecimal digits.
std::string CellText(const RowBatch::Column& column, size_t row);

}  // namespace sluice::server
