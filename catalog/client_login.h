#pragma once

#include <string>
#include <string_view>

#include "catalog/catalog.h"

namespace sluice::catalog {

// The password that libpq would find for that user and server, in PGPASSWORD or ~/.pgpass; "" if
// none. Does not connect.
std::string FindClientPassword(std::string_view host, std::string_view port,
                               std::string_view database, std::string_view user);

// The password of the URL on the first line of a file, if that URL is for the role; "": the file
// has another form (libpq's own), or cannot be read.
std::string PasswordOfUrlIn(const std::string& file, std::string_view role);

// The same login for a process that cannot read the files of this one: with the password that a
// file has for it now.
DatabaseLogin WithPasswordOfFile(DatabaseLogin login);

}  // namespace sluice::catalog
