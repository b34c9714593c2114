#include <libpq-fe.h>

#include "catalog/client_login.h"

namespace sluice::catalog {

std::string FindClientPassword(std::string_view host, std::string_view port,
                               std::string_view database, std::string_view user) {
  const std::string texts[] = {std::string(host), std::string(port), std::string(database),
                               std::string(user)};
  // libpq looks up the password before it finds that it cannot connect to such an address.
  const char* const keys[] = {"host", "port", "dbname", "user", "hostaddr", nullptr};
  const char* const values[] = {texts[0].c_str(), texts[1].c_str(), texts[2].c_str(),
                                texts[3].c_str(), "none",           nullptr};
  PGconn* const handle = PQconnectStartParams(keys, values, 0);
  if (handle == nullptr) {
    return "";
  }
  const char* const found = PQpass(handle);
  std::string password = found == nullptr ? "" : found;
  PQfinish(handle);
  return password;
}

}  // namespace sluice::catalog
