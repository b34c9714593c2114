#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/big_endian.h"
#include "base/status.h"

// The text and binary forms of PostgreSQL's values, and conversion between them. Sources:
// PostgreSQL 15's manual, and what its server sends and accepts, which the tests compare with.
namespace sluice::server::pgwire {

// Appends the binary form, without a length, of a value whose text PostgreSQL printed (DateStyle
// ISO). 22P03: not such a text. The type must have a binary form.
Status AppendBinary(uint32_t oid, std::string_view text, std::string* out);
// A text that PostgreSQL reads back as that value, under any settings. 22P03, 22008: the bytes are
// not a value of the type.
Result<std::string> TextOfBinary(uint32_t oid, std::string_view bytes);

Status NotOfType(uint32_t oid);  // 22P03

// As the server prints them: the fewest digits that give the number back.
inline constexpr size_t kMostNumberChars = 32;
char* PutDouble(double number, char* out);  // where it ends; `out` has room for kMostNumberChars
std::string DoubleText(double number);
std::string FloatText(float number);
// nullopt: not a number. Infinities and NaN are spelled as in PostgreSQL.
std::optional<double> ParseDoubleText(std::string_view text);
std::optional<float> ParseFloatText(std::string_view text);

Status AppendNumeric(std::string_view text, std::string* out);
Result<std::string> TextOfNumeric(std::string_view bytes);

// Days and microseconds since 2000-01-01; the largest and the smallest number are infinite.
inline constexpr int64_t kMicrosFrom1970To2000 = 946'684'800'000'000;
std::optional<int32_t> ParsePostgresDate(std::string_view text);
// A zone in the text is subtracted.
std::optional<int64_t> ParsePostgresTimestamp(std::string_view text);
// Whether the server accepts the date.
bool IsPostgresDate(int32_t days);
bool IsPostgresTimestamp(int64_t micros);
std::string PostgresDateText(int32_t days);
// "2000-01-01 00:00:00.5 BC", with "+00" after the time if there is a zone.
std::string PostgresTimestampText(int64_t micros, bool zone);

struct ClockTime {
  int64_t micros = 0;
  int32_t seconds_west = 0;  // seconds west of UTC
};
std::optional<ClockTime> ParsePostgresTime(std::string_view text);
bool IsPostgresTime(const ClockTime& time);
std::string PostgresTimeText(const ClockTime& time, bool zone);

struct Interval {
  int64_t micros = 0;
  int32_t days = 0;
  int32_t months = 0;
};
// IntervalStyle postgres.
std::optional<Interval> ParsePostgresInterval(std::string_view text);
// Can be read back in any IntervalStyle. Not defined for the smallest number of microseconds.
std::string PostgresIntervalText(const Interval& interval);

// An array of any type; its elements as texts.
struct ArrayValue {
  struct Dimension {
    int32_t size = 0;
    int32_t lower = 1;
  };
  std::vector<Dimension> dimensions;  // none: the array is empty
  std::vector<std::optional<std::string>> elements;
};
// "{1,NULL,"a b"}", "[0:1]={1,2}". 22P02: not an array.
Result<ArrayValue> ParseArrayText(std::string_view text);
std::string ArrayText(const ArrayValue& array);
Result<ArrayValue> ParseArrayBinary(uint32_t element, std::string_view bytes);
Status AppendArrayBinary(uint32_t element, const ArrayValue& array, std::string* out);

}  // namespace sluice::server::pgwire
