#include <sqlite3.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/value.h"
#include "models/features/cell_format.h"
#include "tests/fuzz/target.h"

// The text of a cell as a number, a time, a tensor: if SQLite reads it as one, we read the same
// value; and we read back any value that we write.
namespace sluice::models {
namespace {

[[noreturn]] void Differ(const char* what, std::string_view cell) {
  std::fprintf(stderr, "%s: '%.*s'\n", what, static_cast<int>(cell.size()), cell.data());
  std::abort();
}

// Answers of SQLite about one text.
class Oracle {
 public:
  Oracle() {
    sqlite3_open(":memory:", &database_);
    Prepare("SELECT CAST(strftime('%s', ?1) AS INTEGER)", &seconds_);
    sqlite3_exec(database_, "CREATE TABLE t(x REAL)", nullptr, nullptr, nullptr);
    Prepare("INSERT INTO t VALUES (?1) RETURNING x", &number_);
  }
  ~Oracle() {
    for (sqlite3_stmt* statement : {seconds_, number_}) {
      sqlite3_finalize(statement);
    }
    sqlite3_close(database_);
  }
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;

  // The number that a numeric column stores for the text; nullopt if it stays a text.
  std::optional<double> Number(std::string_view cell) {
    sqlite3_exec(database_, "BEGIN", nullptr, nullptr, nullptr);
    Bind(number_, cell);
    std::optional<double> number;
    if (sqlite3_step(number_) == SQLITE_ROW && sqlite3_column_type(number_, 0) == SQLITE_FLOAT) {
      number = sqlite3_column_double(number_, 0);
    }
    sqlite3_reset(number_);
    sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
    return number;
  }
  std::optional<int64_t> Seconds(std::string_view cell) {
    Bind(seconds_, cell);
    std::optional<int64_t> seconds;
    if (sqlite3_step(seconds_) == SQLITE_ROW &&
        sqlite3_column_type(seconds_, 0) == SQLITE_INTEGER) {
      seconds = sqlite3_column_int64(seconds_, 0);
    }
    sqlite3_reset(seconds_);
    return seconds;
  }

 private:
  void Prepare(const char* sql, sqlite3_stmt** statement) {
    if (sqlite3_prepare_v2(database_, sql, -1, statement, nullptr) != SQLITE_OK) {
      Differ("SQLite does not prepare", sqlite3_errmsg(database_));
    }
  }
  static void Bind(sqlite3_stmt* statement, std::string_view cell) {
    sqlite3_bind_text(statement, 1, cell.data(), static_cast<int>(cell.size()), SQLITE_TRANSIENT);
  }

  sqlite3* database_ = nullptr;
  sqlite3_stmt* seconds_ = nullptr;
  sqlite3_stmt* number_ = nullptr;
};

// SQLite rounds slightly differently; the largest numbers are infinite for both.
bool SameNumber(double a, double b) {
  constexpr double kTolerance = 1e-12;
  constexpr double kSmallest = 1e-300;
  return a == b || std::abs(a - b) <= kTolerance * std::max(std::abs(a), std::abs(b)) ||
         (std::abs(a) < kSmallest && std::abs(b) < kSmallest) ||
         (std::abs(a) > 1 / kSmallest && std::abs(b) > 1 / kSmallest && (a > 0) == (b > 0));
}

void CheckNumber(std::string_view cell, Oracle& oracle) {
  const std::optional<double> theirs = oracle.Number(cell);
  const std::optional<double> ours = ParseNumber(cell);
  if (theirs && (!ours || !SameNumber(*theirs, *ours))) {
    Differ("SQLite reads another number", cell);
  }
  if (!theirs && ours && std::isfinite(*ours)) {
    Differ("SQLite reads no number", cell);
  }
  if (ours && std::isfinite(*ours) && ParseNumber(FormatDouble(*ours)) != *ours) {
    Differ("a number does not come back", cell);
  }
  const std::optional<int64_t> integer = ParseInteger(cell);
  if (integer && (!ours || !SameNumber(static_cast<double>(*integer), *ours))) {
    Differ("an integer is another number", cell);
  }
}

void CheckTimestamp(std::string_view cell, Oracle& oracle) {
  const std::optional<int64_t> micros = ParseTimestamp(cell);
  if (!micros) {
    return;
  }
  constexpr int64_t kMicros = 1'000'000;
  if (const std::optional<int64_t> seconds = oracle.Seconds(TrimBlanks(cell))) {
    const int64_t floor = *micros / kMicros - (*micros % kMicros < 0 ? 1 : 0);
    if (std::abs(floor - *seconds) > 1) {  // SQLite keeps milliseconds, rounded
      Differ("SQLite reads another time", cell);
    }
  }
  const std::string text = FormatTimestamp(*micros);
  // Years with more than four digits can only result from a zone.
  const bool four_digits = !text.ends_with(" BC") && text.find('-') == 4;
  if (four_digits && ParseTimestamp(text) != micros) {
    Differ("a time does not come back", cell);
  }
}

void CheckFormat(std::string_view cell) {
  const CellFormat format = InferFormat(cell);
  if (format.kind == CellKind::kNumber && !ParseNumber(cell)) {
    Differ("a number that cannot be read", cell);
  }
  FormatVote vote;
  vote.Add(cell);
  vote.Add("1,2,3");
  vote.Decide();
}

}  // namespace
}  // namespace sluice::models

FUZZ_TARGET(cells) {
  static sluice::models::Oracle oracle;
  constexpr size_t kLongest = 400;
  const std::string_view cell(reinterpret_cast<const char*>(data), size);
  if (cell.size() > kLongest || cell.find('\0') != std::string_view::npos) {
    return 0;
  }
  sluice::models::CheckFormat(cell);
  sluice::models::CheckNumber(cell, oracle);
  sluice::models::CheckTimestamp(cell, oracle);
  return 0;
}
