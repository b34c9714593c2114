#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/row_batch.h"

namespace sluice::server {

// What a column of a text file holds.
enum class GuessedType { kText, kInteger, kNumber, kFlag, kDate, kTimestamp, kTimestampWithZone };

// Whole numbers as a database writes them: 007 and +5 are names of something. nullopt beyond 64
// bits, too.
std::optional<int64_t> ReadInteger(std::string_view text);
// A decimal number, with or without an exponent; never 007, +5, a hexadecimal one or an infinity.
std::optional<double> ReadNumber(std::string_view text);
std::optional<bool> ReadFlag(std::string_view text);  // true, false in any case
// What files write for a value that is not there: NA, NULL, NaN, ? and the like, also "".
bool IsMissingMark(std::string_view text);

// The type of a column by all of its cells. Not thread-safe.
class ColumnGuess {
 public:
  // A cell that is not NULL.
  void See(std::string_view text);
  // The narrowest type that holds all cells; marks of missing values count as NULL where the others
  // are no texts.
  GuessedType type() const;
  // Cells that are NULL if the type is not text.
  int64_t marks() const { return marks_; }

 private:
  bool any_ = false;
  int64_t marks_ = 0;
  bool integer_ = true;
  bool number_ = true;
  bool flag_ = true;
  bool date_ = true;
  bool timestamp_ = true;
  bool with_zone_ = false, without_zone_ = false;  // some timestamps
};

// The column of a new table, as both databases declare it.
ColumnInfo DeclareColumn(const std::string& name, GuessedType type);

}  // namespace sluice::server
