#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::catalog {

struct SourceUrl {
  enum class Kind : int { kSqlite = 1, kPostgres = 2 };
  Kind kind = Kind::kSqlite;
  std::string text;      // without the password
  std::string path;      // SQLite: the file, or ":memory:"
  std::string password;  // PostgreSQL: as it stood in the URL, percent-decoded; "" when none
};

// sqlite:PATH | postgresql://user[:password]@host:port/database[?setting=value&...]. Errors never
// repeat the password.
Result<SourceUrl> ParseSourceUrl(std::string_view url);

}  // namespace sluice::catalog
