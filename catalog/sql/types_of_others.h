#pragma once

#include <string>
#include <string_view>

namespace sluice::catalog {

// A query of PostgreSQL for the names of the roles that have made the types that `types` (a query
// for OIDs), or parts of their values, are of, if a role that is not trusted: neither a superuser
// nor one that the current role is a member of. To write a value of a domain runs functions, its
// checks, with the rights of whoever writes; so no such type is given to what others' rows are
// written to. Refers to the server's own names only. Enumerations run nothing; base types are made
// by superusers only.
std::string MakersOfTypes(std::string_view types);

}  // namespace sluice::catalog
