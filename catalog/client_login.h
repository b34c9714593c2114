#pragma once

#include <string>
#include <string_view>

namespace sluice::catalog {

// The password that libpq would find for that user at that place, in PGPASSWORD or ~/.pgpass; ""
// when none. Connects to nobody.
std::string FindClientPassword(std::string_view host, std::string_view port,
                               std::string_view database, std::string_view user);

}  // namespace sluice::catalog
