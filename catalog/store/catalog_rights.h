#pragma once

#include <string>
#include <string_view>
#include <vector>

// Ownership of models and jobs in PostgreSQL, as conditions for the stores (which query on a
// connection of Sluice's own login, on behalf of a role) and as row-level security for all other
// sessions. Both enforce the same rules. SQLite has no roles.
namespace sluice::catalog {

// Roles are stored as OIDs (regrole): a renamed role keeps what it owns, and a role that gets
// another's old name does not get that one's objects. In {models}.users 0 stands for every role.
//
// Conditions on rows of {models} and {jobs}; `role` is an SQL expression for the OID of the calling
// role. Members of a role see and change what it owns; a model is also visible to those in `users`
// and `inspectors`, and its plan to those in `inspectors`.
std::string OwnedBy(std::string_view role);
std::string SeenBy(std::string_view role);
std::string InspectedBy(std::string_view role);

// The same for {model_types}, which has always had these columns.
std::string OwnerColumns();

// How the tables record the owner of a row.
enum class Owners { kNotAtAll, kByName, kByOid };

// Statements that add owners to the tables, and let every role read its own rows.
std::vector<std::string> RightsDefinitions(Owners owners);

}  // namespace sluice::catalog
