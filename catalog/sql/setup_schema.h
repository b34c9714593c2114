#pragma once

#include <string>
#include <string_view>

namespace sluice::catalog {

// Statements for a superuser (sluice setup): the schema of the catalog, of the gateway's login. One
// that another role has made already is an error, since its owner could put others in the place of
// the functions that are made there.
std::string MakeCatalogSchema(std::string_view login);

}  // namespace sluice::catalog
