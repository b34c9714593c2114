#pragma once

#include <string>
#include <string_view>

namespace sluice::catalog {

// What gives the catalog of a PostgreSQL database to `role`, when another login created it: a
// script for psql, run by a superuser in that database. It changes nothing, and says what it found,
// if the catalog has been made to run a function of somebody's, which would then run with `role`'s
// rights.
std::string AdoptionScript(std::string_view role);

}  // namespace sluice::catalog
