#include <libpq-fe.h>

#include <fstream>

#include "catalog/client_login.h"
#include "catalog/source_url.h"

namespace sluice::catalog {
namespace {

// The password with which libpq would connect; it looks it up before it finds that it cannot
// connect to the address. The last key is null.
std::string PasswordWith(const char* const* keys, const char* const* values) {
  PGconn* const handle = PQconnectStartParams(keys, values, 1);
  const char* const found = handle == nullptr ? nullptr : PQpass(handle);
  std::string password = found == nullptr ? "" : found;
  PQfinish(handle);
  return password;
}

constexpr const char* kNowhere = "none";  // an address

}  // namespace

std::string FindClientPassword(std::string_view host, std::string_view port,
                               std::string_view database, std::string_view user) {
  const std::string texts[] = {std::string(host), std::string(port), std::string(database),
                               std::string(user)};
  const char* const keys[] = {"host", "port", "dbname", "user", "hostaddr", nullptr};
  const char* const values[] = {texts[0].c_str(), texts[1].c_str(), texts[2].c_str(),
                                texts[3].c_str(), kNowhere,         nullptr};
  return PasswordWith(keys, values);
}

std::string PasswordOfUrlIn(const std::string& file, std::string_view role) {
  std::ifstream lines(file);
  std::string line;
  if (file.empty() || !std::getline(lines, line)) {
    return "";
  }
  line.resize(line.find_last_not_of(" \t\r") + 1);
  const Result<SourceUrl> url = ParseSourceUrl(line);
  return url.ok() && url->kind == SourceUrl::Kind::kPostgres && RoleIn(url->text) == role
             ? url->password
             : "";
}

DatabaseLogin WithPasswordOfFile(DatabaseLogin login) {
  std::string url = WithoutPasswordFile(login.url);
  if (url == login.url) {
    return login;
  }
  if (login.secret.empty()) {
    const std::string file = PasswordFileIn(login.url);
    login.secret = PasswordOfUrlIn(file, RoleIn(login.url));
    if (login.secret.empty()) {
      const char* const keys[] = {"dbname", "hostaddr", nullptr};
      const char* const values[] = {login.url.c_str(), kNowhere, nullptr};
      login.secret = PasswordWith(keys, values);
    }
  }
  login.url = std::move(url);
  return login;
}

}  // namespace sluice::catalog
