#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

// Whose is a statement: the database's or ours?
namespace sluice::server::pgwire {

// What of a script runs where. Consecutive statements of the database are one part.
struct Part {
  enum class Kind {
    kPlain,  // the database's
    kOurs,
    kSet,      // SET sluice.name: checked here, kept by the database
    kPrepare,  // PREPARE name AS a statement of ours: `inside`
    kExecute,  // EXECUTE name, of such a statement
    kForget,   // DEALLOCATE `name`, DISCARD ALL (""): perhaps of such a statement
  };
  Kind kind = Kind::kPlain;
  Span span;  // in the script
  // kOurs inside of DECLARE ... CURSOR FOR or COPY (...) TO: the statement of ours itself. What
  // stands around it is the database's, for its rows. The script has nothing else.
  std::optional<Span> inside;
  bool transaction = false;  // kPlain: begins with BEGIN or START
  std::string name = {};     // kForget
};

struct Route {
  std::vector<Part> parts;
  Status error;  // of a statement of ours: nothing of the script runs
};

// False for nearly all that the database understands itself: no word of ours stands in the text
// outside of strings, quoted names and comments. One pass, no memory.
bool MayBeOurs(std::string_view sql);

// nullopt: the whole script is the database's, also where it cannot be read here: then the database
// says best what is wrong with it. `is_prepared`: whether a name, as EXECUTE has it, is that of a
// statement of ours when the script begins; none is where it is empty. Linear in the script.
// Thread-safe.
using IsPrepared = std::function<bool(std::string_view name)>;
std::optional<Route> RouteScript(std::string_view sql, const IsPrepared& is_prepared = nullptr);

// What stands before a cursor's SELECT says DECLARE, and not WITH HOLD: the cursor goes with its
// transaction.
bool DeclaresForTransaction(std::string_view before);

// Whether a text means here what it means to the back end, which has said so much of itself: no
// encoding that hides ASCII in its bytes, no backslashes in plain strings.
bool IsReadable(const std::map<std::string, std::string>& parameters);

}  // namespace sluice::server::pgwire
