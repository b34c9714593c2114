#include <charconv>

#include "catalog/postgres/postgres_session_internal.h"

// Finds the names of settings of the users' own (a.b) in what is stored in the database.
namespace sluice::catalog {
namespace {

// What its administrators and this role made is searched whole. Of what others made only the first
// kilobytes are, so that nobody makes everybody's statements slow; and nothing of other sessions,
// and of the schema in which every role may create. Bodies, policies and views that are stored as
// trees are searched as they are stored: to be read as SQL they would have to be deparsed, which
// fails for a tree of others that is too deep, and waits for others' locks. Every name is
// schema-qualified, because the user controls search_path and its operators. 2077 and 3294 are the
// oids of current_setting, which never change.
constexpr const char* kStored =
    "WITH stored AS (SELECT p.proowner AS owner, p.pronamespace AS schema, p.prosrc AS text,"
    " false AS tree FROM pg_catalog.pg_proc AS p"
    " JOIN pg_catalog.pg_language AS l ON l.oid OPERATOR(pg_catalog.=) p.prolang"
    " WHERE l.lanname OPERATOR(pg_catalog.<>) 'internal'"
    " AND l.lanname OPERATOR(pg_catalog.<>) 'c'"
    "{}"
    " UNION ALL SELECT c.relowner, c.relnamespace, e.tree::pg_catalog.text, true"
    " FROM pg_catalog.pg_policy AS y"
    " JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) y.polrelid,"
    " LATERAL (VALUES (y.polqual), (y.polwithcheck)) AS e(tree) WHERE e.tree IS NOT NULL"
    " UNION ALL SELECT c.relowner, c.relnamespace, r.ev_action::pg_catalog.text, true"
    " FROM pg_catalog.pg_rewrite AS r"
    " JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) r.ev_class"
    " WHERE c.relkind OPERATOR(pg_catalog.=) 'v' AND r.oid OPERATOR(pg_catalog.>=) 16384"
    " AND r.ev_action::pg_catalog.text OPERATOR(pg_catalog.~) ':funcid (2077|3294) '),"
    " bounded AS (SELECT s.text, s.tree, k.own, pg_catalog.sum(pg_catalog.octet_length(s.text))"
    " OVER (PARTITION BY k.own, s.tree ORDER BY pg_catalog.octet_length(s.text)"
    " ROWS UNBOUNDED PRECEDING) AS bytes FROM stored AS s"
    " JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) s.schema"
    " JOIN pg_catalog.pg_roles AS r ON r.oid OPERATOR(pg_catalog.=) s.owner"
    " JOIN pg_catalog.pg_database AS d"
    " ON d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database(),"
    " LATERAL (VALUES (r.rolsuper OR r.rolname OPERATOR(pg_catalog.=) current_user"
    " OR r.oid OPERATOR(pg_catalog.=) d.datdba)) AS k(own)"
    " WHERE n.nspname OPERATOR(pg_catalog.<>) 'sluice_stage'"
    " AND NOT pg_catalog.pg_is_other_temp_schema(n.oid))"
    " SELECT DISTINCT b.tree, m[1] FROM bounded AS b, pg_catalog.regexp_matches(b.text,"
    " CASE WHEN b.tree THEN $2 ELSE $1 END, 'gi') AS m"
    " WHERE b.own OR b.bytes OPERATOR(pg_catalog.<=)"
    " CASE WHEN b.tree THEN 2000000 ELSE 500000 END";
constexpr std::string_view kStandardBodies =
    " UNION ALL SELECT p.proowner, p.pronamespace, p.prosqlbody::pg_catalog.text, true"
    " FROM pg_catalog.pg_proc AS p WHERE p.prosqlbody IS NOT NULL";
constexpr int kHasStandardBodies = 140'000;  // the server's version

// Quoted, or after SET.
constexpr std::string_view kInText =
    R"((?:'|set\s+(?:session\s+)?)([a-z_][a-z_0-9$]*(?:\.[a-z_0-9$]+)+))";
// The bytes of a constant after the four that are its length, with a dot (46) between others. A
// tree has them in decimal.
constexpr std::string_view kInTree = R"(:constvalue \d+ \[ (?:-?\d+ ){4}((?:\d+ )+46 (?:\d+ )+)\])";

// The characters whose decimal numbers these are, with a blank after each; "": no characters.
std::string FromDecimal(std::string_view bytes) {
  std::string text;
  const char* const end = bytes.data() + bytes.size();
  for (const char* at = bytes.data(); at != end; ++at) {
    unsigned char byte = 0;
    const auto [after, error] = std::from_chars(at, end, byte);
    if (error != std::errc() || after == end || byte == 0) {
      return {};
    }
    text.push_back(static_cast<char>(byte));
    at = after;
  }
  return text;
}

}  // namespace

Result<std::set<std::string>> SettingsNamedInDatabase(PostgresConnection& session) {
  const bool bodies = PQserverVersion(session.handle()) >= kHasStandardBodies;
  ASSIGN_OR_RETURN(const PostgresResult found,
                   session.Ask(fmt::format(kStored, bodies ? kStandardBodies : ""),
                               {std::string(kInText), std::string(kInTree)}));
  std::set<std::string> names;
  for (int row = 0; row < PQntuples(found.get()); ++row) {
    const std::string_view text = PostgresText(found.get(), row, 1);
    std::string name =
        PostgresText(found.get(), row, 0) == "t" ? FromDecimal(text) : std::string(text);
    if (IsDottedName(name)) {
      names.insert(std::move(name));
    }
  }
  return names;
}

}  // namespace sluice::catalog
