#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace sluice {

// The types of rows outside a database. All other types arrive as kText.
enum class DataType : int {
  kBool = 1,
  kInt64 = 2,
  kDouble = 3,  // float4, float8, numeric
  kText = 4,
  kTimestamp = 5,  // microseconds since 1970-01-01 UTC; dates are midnight
  kBytes = 6,
};

std::string_view DataTypeName(DataType type);  // "bigint", "double", "text" ...

inline bool IsNumeric(DataType type) {
  return type == DataType::kBool || type == DataType::kInt64 || type == DataType::kDouble;
}

// One cell; std::monostate is NULL. kTimestamp cells are int64_t, kBytes cells std::string.
using Value = std::variant<std::monostate, bool, int64_t, double, std::string>;

inline bool IsNull(const Value& value) {
  return std::holds_alternative<std::monostate>(value);
}

// The only place where a cell becomes text: "" for NULL, shortest round-trip form for doubles,
// "t"/"f" for booleans, ISO 8601 for timestamps.
std::string FormatValue(const Value& value, DataType type);
std::string FormatDouble(double value);
std::string FormatTimestamp(int64_t micros);

}  // namespace sluice
