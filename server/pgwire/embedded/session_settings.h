#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace sluice::server::pgwire {

// The SET values of an embedded session. They do not change how SQLite reads or shows values;
// clients ask for them. Not thread-safe.
class SessionSettings {
 public:
  // `options`: from the start-up message (application_name, DateStyle, ...).
  SessionSettings(std::string version, std::string user,
                  const std::vector<std::pair<std::string, std::string>>& options);

  // 0A000: an encoding that SQLite does not support; 55P02: it cannot be changed.
  Status Set(std::string_view name, std::string value, bool local);
  Status Reset(std::string_view name);  // "": all
  // nullopt: not set.
  std::optional<std::string> Get(std::string_view name) const;
  const std::map<std::string, std::string>& all() const { return values_; }
  // idle_in_transaction_session_timeout; at most five minutes, which 0 stands for.
  std::chrono::milliseconds MostSilence() const;

  // A transaction begins: from here on ROLLBACK undoes SET, and COMMIT undoes SET LOCAL.
  void Begin();
  void End(bool committed);

  // The settings that clients are told without asking, as PostgreSQL spells them; and those of them
  // that have changed since the last call.
  std::vector<std::pair<std::string, std::string>> Reported() const;
  std::vector<std::pair<std::string, std::string>> TakeChanged();

 private:
  std::map<std::string, std::string> values_;                // by names in lower case
  std::map<std::string, std::string> first_;                 // the values that RESET restores
  std::map<std::string, std::string> before_;                // the values before the transaction
  std::map<std::string, std::optional<std::string>> local_;  // the values before SET LOCAL
  std::map<std::string, std::string> told_;
};

}  // namespace sluice::server::pgwire
