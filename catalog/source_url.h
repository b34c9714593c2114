#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::catalog {

struct SourceUrl {
  enum class Kind : int { kSqlite = 1, kPostgres = 2 };
  Kind kind = Kind::kSqlite;
  std::string text;       // without the password
  std::string path;       // SQLite: the file, or ":memory:"
  std::string password;   // PostgreSQL: as it stood in the URL, percent-decoded; "" when none
  bool must_ask = false;  // PostgreSQL: a server that did not ask for the password is refused
};

// sqlite:PATH | postgresql://user[:password]@host:port/database[?setting=value&...]. Errors never
// repeat the password.
Result<SourceUrl> ParseSourceUrl(std::string_view url);

// The user that a PostgreSQL URL names; "" when none.
std::string RoleIn(std::string_view url);
// A PostgreSQL URL (SourceUrl::text) with another user.
std::string WithRole(std::string_view url, std::string_view role);

// The same with another database; the URL may have a password.
std::string WithDatabase(std::string_view url, std::string_view database);

// The same at another address: of the server that listens at the Unix socket FOLDER/.s.PGSQL.PORT
// ("@name": an abstract one). What the URL says of TLS goes: there is none on the way.
std::string WithSocket(std::string_view url, std::string_view folder, std::string_view port);

// A text to show or to log, without the secrets that stand in it: the password of a URL, and the
// values of settings that are called password, sslpassword and the like, in a URL or beside each
// other. When in doubt more is left out.
std::string WithoutSecrets(std::string_view text);

}  // namespace sluice::catalog
