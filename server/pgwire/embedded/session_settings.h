#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace sluice::server::pgwire {

// What an embedded session has SET. Nothing of it changes how SQLite reads or shows a value;
// clients ask for it. Not thread-safe.
class SessionSettings {
 public:
  // `options`: of the start-up message (application_name, DateStyle, ...).
  SessionSettings(std::string version, std::string user,
                  const std::vector<std::pair<std::string, std::string>>& options);

  // 0A000: an encoding that is none of SQLite's; 55P02: it cannot be changed.
  Status Set(std::string_view name, std::string value, bool local);
  Status Reset(std::string_view name);  // "": all
  // nullopt: nobody has set it.
  std::optional<std::string> Get(std::string_view name) const;
  const std::map<std::string, std::string>& all() const { return values_; }

  // A transaction begins: from here on ROLLBACK takes back what is SET, and COMMIT what is SET
  // LOCAL.
  void Begin();
  void End(bool committed);

  // What clients are told unasked, as PostgreSQL spells it; and of those, what has changed since.
  std::vector<std::pair<std::string, std::string>> Reported() const;
  std::vector<std::pair<std::string, std::string>> TakeChanged();

 private:
  std::map<std::string, std::string> values_;                // by names in lower case
  std::map<std::string, std::string> first_;                 // that RESET goes back to
  std::map<std::string, std::string> before_;                // the transaction
  std::map<std::string, std::optional<std::string>> local_;  // before SET LOCAL
  std::map<std::string, std::string> told_;
};

}  // namespace sluice::server::pgwire
