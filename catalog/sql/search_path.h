#pragma once

#include <string>
#include <string_view>

// "$user" in a search_path is the schema named like the role, and a role may be named like a schema
// of Sluice: its plain statements would then read and write Sluice's tables.
namespace sluice::catalog {

// sluice and sluice_stage: Sluice's own schemas in a PostgreSQL database.
bool IsOwnSchema(std::string_view name);

// For a login whose name is that of an own schema: one row with the session's search_path; no row
// if the schema was made by somebody else, whose tables the login may expect to find.
extern const std::string_view kSearchPathOfLogin;

// `search_path` without "$user", as text for the setting; the same text if that is not in it.
// `search_path`: as the server shows it.
std::string WithoutSchemaOfUser(std::string_view search_path);

}  // namespace sluice::catalog
