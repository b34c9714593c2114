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

// A text to show or to log, without the secrets that stand in it: the password of a URL, and the
// values of settings that are called password, sslpassword and the like, in a URL or beside each
// other. When in doubt more is left out.
std::string WithoutSecrets(std::string_view text);

}  // namespace sluice::catalog
