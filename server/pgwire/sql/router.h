#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/pgwire/sql/prepared_text.h"

// Decides which statements are the database's and which are ours.
namespace sluice::server::pgwire {

// A part of a script and where it runs. Consecutive statements of the database are one part.
struct Part {
  enum class Kind {
    kPlain,  // the database's
    kOurs,
    kSet,      // SET sluice.name: checked here, kept by the database
    kPrepare,  // PREPARE name AS a statement of ours: `inside`
    kExecute,  // EXECUTE name, of a prepared statement of ours
    kForget,   // DEALLOCATE `name`, DISCARD ALL (""): possibly of one of ours
  };
  Kind kind = Kind::kPlain;
  Span span;  // place in the script
  // kOurs inside DECLARE ... CURSOR FOR or COPY (...) TO: the statement of ours itself. The
  // statement around it goes to the database, with the rows of ours. Such a script has no other
  // statement.
  std::optional<Span> inside;
  bool transaction = false;  // kPlain: begins with BEGIN or START
  std::string name = {};     // kForget
};

struct Route {
  std::vector<Part> parts;
  Status error;  // of a statement of ours: then nothing of the script runs
};

// False for nearly everything that the database understands itself: no keyword of ours stands in
// the text outside strings, quoted names and comments. One pass, no allocation.
bool MayBeOurs(std::string_view sql);

// nullopt: the whole script is the database's. So it is when it cannot be read here: the database
// has the better error. `is_prepared`: whether a name in EXECUTE is that of a statement of ours
// when the script begins; empty: none is. Linear in the script. Thread-safe.
using IsPrepared = std::function<bool(std::string_view name)>;
std::optional<Route> RouteScript(std::string_view sql, const IsPrepared& is_prepared = nullptr);

// PREPARE name [(type, ...)] AS a statement of ours.
struct PrepareOfOurs {
  std::optional<PrepareText> head;  // nullopt: it has no name, or is misspelt otherwise
  Span inside;                      // place of the statement of ours
  Status error;                     // of that
};
// nullopt: any other text.
std::optional<PrepareOfOurs> ReadPrepareOfOurs(std::string_view sql);

// Whether the text before a cursor's SELECT is DECLARE without WITH HOLD: the cursor ends with its
// transaction.
bool DeclaresForTransaction(std::string_view before);

// Whether we can read texts as the back end with these parameters does: its encoding does not use
// ASCII bytes inside characters, and plain strings have no backslash escapes.
bool IsReadable(const std::map<std::string, std::string>& parameters);

}  // namespace sluice::server::pgwire
