#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "catalog/sqlite/sqlite_connection_internal.h"

namespace sluice::catalog {

// Arguments and results of SQL functions that are implemented in C++.
inline std::string_view TextOf(sqlite3_value* value) {
  const unsigned char* text = sqlite3_value_text(value);
  return text == nullptr ? std::string_view()
                         : std::string_view(reinterpret_cast<const char*>(text),
                                            static_cast<size_t>(sqlite3_value_bytes(value)));
}

inline void Answer(sqlite3_context* context, std::string_view text) {
  sqlite3_result_text64(context, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

inline bool IsNullValue(sqlite3_value* value) {
  return sqlite3_value_type(value) == SQLITE_NULL;
}

// Registers such functions on a connection.
class FunctionRegistrar {
 public:
  using Function = void (*)(sqlite3_context*, int, sqlite3_value**);

  explicit FunctionRegistrar(SqliteConnection& connection) : connection_(connection) {}

  void Add(const char* name, int count, Function function, const void* data = nullptr,
           int flags = SQLITE_DETERMINISTIC) {
    Note(sqlite3_create_function_v2(connection_.handle(), name, count, SQLITE_UTF8 | flags,
                                    const_cast<void*>(data), function, nullptr, nullptr, nullptr));
  }
  void AddAggregate(const char* name, int count, Function step, void (*end)(sqlite3_context*)) {
    Note(sqlite3_create_function_v2(connection_.handle(), name, count, SQLITE_UTF8, nullptr,
                                    nullptr, step, end, nullptr));
  }
  // A function that returns this text.
  void AddText(const char* name, const std::string& text, int arguments = 0);
  // The first error.
  Status status() const { return code_ == SQLITE_OK ? OkStatus() : connection_.LastError(""); }

 private:
  void Note(int code) { code_ = code_ == SQLITE_OK ? code : code_; }

  SqliteConnection& connection_;
  int code_ = SQLITE_OK;
};

// Arrays of PostgreSQL as text, "{a,b}", and vectors, "1 2" (sqlite_pg_arrays.cc).
void AddArrayFunctions(FunctionRegistrar& add);
// An element as it stands in an array's text.
std::string QuotedArrayElement(std::string_view text);

}  // namespace sluice::catalog
