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
// writes: a line for each, "name" "SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey" (as
// pgbouncer's auth_file has it; a quote in a name is doubled), and comments behind '#'.
namespace sluice::server::pgwire {

struct PasswordFile {
  // By the user's name; as they stand in the file.
  std::map<std::string, std::string, std::less<>> users;
  // What those who are not here are answered with (MockScramVerifier); kept, so that they look the
  // same after the gateway was started again.
  std::string secret;
};

// 22023, with the line's number: it is no such file.
Result<PasswordFile> ParsePasswordFile(std::string_view text);
std::string PrintPasswordFile(const PasswordFile& file);

// Gives a user a password, in place of one that there was; the file and its folder (0600, 0700) are
// made where there are none. What is wrong with the file is as in private_files.h; 22023: an empty
// name or password; 0A000: PreparePassword.
Status SetPassword(const std::string& path, const std::string& name, std::string_view password);
// 42704: there is no such user.
Status RemovePassword(const std::string& path, const std::string& name);

// Read again for each login, so that who is added comes in at once.
Result<std::unique_ptr<Verifiers>> OpenPasswordFile(const std::string& path);
// Everybody who has a password there, by name.
Result<std::vector<std::string>> UsersOf(const std::string& path);
// Whether it is the user's password. Takes some milliseconds, whether or not there is such a user.
Result<bool> IsPassword(const std::string& path, const std::string& name,
                        std::string_view password);

}  // namespace sluice::server::pgwire
