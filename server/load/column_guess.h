#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/row_batch.h"

namespace sluice::server {

// What a column of a text file holds.
enum class GuessedType { kText, kInteger, kNumber, kFlag, kDate, kTimestamp, kTimestampWithZone };

// Whole numbers as a database writes them; 007 and +5 are rather names of something. nullopt also
// beyond 64 bits.
std::optional<int64_t> ReadInteger(std::string_view text);
// A decimal number, with or without an exponent; but not 007, +5, hexadecimal or infinite.
std::optional<double> ReadNumber(std::string_view text);
std::optional<bool> ReadFlag(std::string_view text);  // true, false in upper or lower case
// Common spellings of a missing value in files: NA, NULL, NaN, ? and the like, also "".
bool IsMissingMark(std::string_view text);

// Finds the type of a column from all of its cells. Not thread-safe.
class ColumnGuess {
 public:
  // A cell that is not NULL.
  void See(std::string_view text);
  // The narrowest type that holds all cells; marks of missing values count as NULL unless the
  // column is text.
  GuessedType type() const;
  // Number of cells that become NULL unless the type is text.
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
