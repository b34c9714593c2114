#pragma once

#include <string>
#include <string_view>
#include <vector>

// Whose models and jobs are whose in PostgreSQL, as conditions for the stores (which ask on a
// connection of Sluice's own login, for a role) and as row-level security for everybody else. Both
// say the same. SQLite has no roles.
namespace sluice::catalog {

// Conditions on rows of {models} and {jobs}; `role` is an SQL expression of the role that asks.
// Its members see and change what a role owns; a model is seen by those in `users`, too.
std::string OwnedBy(std::string_view role);
std::string SeenBy(std::string_view role);

// Statements that give the tables their owners, and let everybody read what is theirs. The last one
// enables the row-level security of {result_tables}: where that is so, all have run.
std::vector<std::string> RightsDefinitions();

}  // namespace sluice::catalog
