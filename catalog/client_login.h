#pragma once

#include <string>
#include <string_view>

namespace sluice::catalog {

// The password that libpq would find for that user and server, in PGPASSWORD or ~/.pgpass; "" if
// none. Does not connect.
std::string FindClientPassword(std::string_view host, std::string_view port,
                               std::string_view database, std::string_view user);

}  // namespace sluice::catalog
