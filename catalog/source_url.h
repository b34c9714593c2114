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
  std::string password;   // PostgreSQL: from the URL, percent-decoded; "" if none
  bool must_ask = false;  // PostgreSQL: a server that admits the user without a password is refused
};

// sqlite:PATH | postgresql://user[:password]@host:port/database[?setting=value&...]. Errors never
// repeat the password.
Result<SourceUrl> ParseSourceUrl(std::string_view url);

// The scheme of "scheme://...", as far as it can only be one: all that an error may repeat of a URL
// that is not understood. "" for other texts, which may be a password or a token.
std::string_view SchemeOf(std::string_view url);

// The user in a PostgreSQL URL; "" if none.
std::string RoleIn(std::string_view url);
// The database in it; "" if none.
std::string DatabaseIn(std::string_view url);
// Whether two PostgreSQL URLs (SourceUrl::text) spell the same host and port.
bool IsSameServer(std::string_view one, std::string_view other);
// A PostgreSQL URL (SourceUrl::text) with another user.
std::string WithRole(std::string_view url, std::string_view role);

// The same with another database; the URL may have a password.
std::string WithDatabase(std::string_view url, std::string_view database);

// The same at another address: the server that listens on the Unix socket FOLDER/.s.PGSQL.PORT
// ("@name": an abstract one). Removes the URL's TLS settings, since a Unix socket has no TLS.
std::string WithSocket(std::string_view url, std::string_view folder, std::string_view port);

// A PostgreSQL URL whose password, if it has one, is read from the file at each connection: the
// file's first line is the URL with the password (as --source-file has it), for the same user.
// Other URLs as they are. `path`: absolute.
std::string WithPasswordFile(std::string_view url, std::string_view path);

// The file of passwords in a PostgreSQL URL (libpq's passfile), of that or libpq's form; "": none.
std::string PasswordFileIn(std::string_view url);
// The same URL without it.
std::string WithoutPasswordFile(std::string_view url);

// A text to show or to log, without its secrets: the password of a URL, and the values of settings
// named password, sslpassword and the like, in a URL or on their own. When in doubt more is left
// out.
std::string WithoutSecrets(std::string_view text);

}  // namespace sluice::catalog
