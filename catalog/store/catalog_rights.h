#pragma once

#include <string>
#include <string_view>
#include <vector>

// Whose models and jobs are whose in PostgreSQL, as conditions for the stores (which ask on a
// connection of Sluice's own login, for a role) and as row-level security for everybody else. Both
// say the same. SQLite has no roles.
namespace sluice::catalog {

// Roles are their OIDs, as regrole: a role that gets another name keeps what it has, and one that
// gets the name of another does not get that one's. In {models}.users 0 is everybody.
//
// Conditions on rows of {models} and {jobs}; `role` is an SQL expression of the OID of the role
// that asks. Its members see and change what a role owns; a model is seen by those in `users`, too.
std::string OwnedBy(std::string_view role);
std::string SeenBy(std::string_view role);

// The same of {model_types}, which has these columns from the beginning.
std::string OwnerColumns();

// How the tables say whose a row is.
enum class Owners { kNotAtAll, kByName, kByOid };

// Statements that give the tables their owners, and let everybody read what is theirs.
std::vector<std::string> RightsDefinitions(Owners owners);

}  // namespace sluice::catalog
