#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/pgwire/scram.h"
#include "server/pgwire/verifiers.h"

// The users of a database that has none of its own (SQLite), in a file that `sluice password`
// writes: one per line, "name" "SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey" (the format of
// pgbouncer's auth_file; a quote in a name is doubled), and comments after '#'.
namespace sluice::server::pgwire {

struct PasswordFile {
  // Lines of the file, by user name.
  std::map<std::string, std::string, std::less<>> users;
  // Makes the verifiers for unknown users (MockScramVerifier); stored, so that they stay the same
  // when the gateway restarts.
  std::string secret;
};

// 22023, with the line number: malformed.
Result<PasswordFile> ParsePasswordFile(std::string_view text);
std::string PrintPasswordFile(const PasswordFile& file);

// Sets a user's password, replacing any earlier one; creates the file and its folder (0600, 0700)
// if necessary. Errors of the file as in private_files.h; 22023: an empty name or password; 0A000:
// see PreparePassword.
Status SetPassword(const std::string& path, const std::string& name, std::string_view password);
// 42704: no such user.
Status RemovePassword(const std::string& path, const std::string& name);

// Reads the file for each login, so that a new user can log in at once.
Result<std::unique_ptr<Verifiers>> OpenPasswordFile(const std::string& path);
// Everybody who has a password there, by name.
Result<std::vector<std::string>> UsersOf(const std::string& path);
// Whether it is the user's password. Takes some milliseconds, whether or not the user exists.
Result<bool> IsPassword(const std::string& path, const std::string& name,
                        std::string_view password);

}  // namespace sluice::server::pgwire
