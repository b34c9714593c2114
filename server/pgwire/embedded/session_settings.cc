#include "server/pgwire/embedded/session_settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/duration.h"
#include "base/letter_case.h"
#include "catalog/sql/sql_text.h"

namespace sluice::server::pgwire {
namespace {

// What a session may keep: clients make names of their own up.
constexpr size_t kMostSettings = 1'000;
constexpr size_t kMostBytes = size_t{64} << 10;  // of a name and its value

// In the order in which PostgreSQL 15 reports them.
constexpr std::array<std::string_view, 13> kReported = {"application_name",
                                                        "client_encoding",
                                                        "DateStyle",
                                                        "default_transaction_read_only",
                                                        "in_hot_standby",
                                                        "integer_datetimes",
                                                        "IntervalStyle",
                                                        "is_superuser",
                                                        "server_encoding",
                                                        "server_version",
                                                        "session_authorization",
                                                        "standard_conforming_strings",
                                                        "TimeZone"};
// No session can change these.
constexpr std::array<std::string_view, 7> kConstant = {
    "server_version",    "server_encoding",       "is_superuser",      "in_hot_standby",
    "integer_datetimes", "session_authorization", "server_version_num"};

constexpr std::chrono::milliseconds kMostSilence = std::chrono::minutes(5);
constexpr std::string_view kSilence = "idle_in_transaction_session_timeout";

bool IsUtf8Encoding(const std::string& value) {
  const std::string name = LowerAscii(value);
  return name == "utf8" || name == "utf-8" || name == "unicode" || name == "sql_ascii" ||
         name == "default";
}

}  // namespace

SessionSettings::SessionSettings(std::string version, std::string user,
                                 const std::vector<std::pair<std::string, std::string>>& options) {
  values_ = {{"application_name", ""},
             {"client_encoding", "UTF8"},
             {"datestyle", "ISO, MDY"},
             {"default_transaction_isolation", "serializable"},
             {"default_transaction_read_only", "off"},
             {"transaction_isolation", "serializable"},
             {"transaction_read_only", "off"},
             {"in_hot_standby", "off"},
             {"integer_datetimes", "on"},
             {"intervalstyle", "postgres"},
             {"is_superuser", "off"},
             {"server_encoding", "UTF8"},
             {"server_version", std::move(version)},
             {"server_version_num", "150000"},
             {"session_authorization", std::move(user)},
             {"standard_conforming_strings", "on"},
             {"timezone", "UTC"},
             {"search_path", "public"},
             {"client_min_messages", "notice"},
             {"statement_timeout", "0"},
             {"lock_timeout", "0"},
             {"idle_in_transaction_session_timeout", "1min"},
             {"extra_float_digits", "1"},
             {"bytea_output", "hex"},
             {"max_identifier_length", "63"},
             {"lc_collate", "C"},
             {"lc_ctype", "C"},
             {"max_index_keys", "32"},
             {"row_security", "on"},
             {"escape_string_warning", "on"}};
  for (const auto& [name, value] : options) {
    if (name != "user" && name != "database" && name != "options" && name != "replication" &&
        !name.starts_with("_pq_.")) {
      // An error leaves the setting unchanged.
      [[maybe_unused]] const Status set = Set(LowerAscii(name), value, false);
    }
  }
  first_ = values_;
  for (const auto& [name, value] : Reported()) {
    told_[name] = value;
  }
}

Status SessionSettings::Set(std::string_view name, std::string value, bool local) {
  const std::string key(name);
  if (std::find(kConstant.begin(), kConstant.end(), name) != kConstant.end()) {
    return FailedPrecondition(fmt::format("parameter \"{}\" cannot be changed", name))
        .SqlState("55P02");
  }
  if (name.size() + value.size() > kMostBytes ||
      (values_.size() >= kMostSettings && !values_.contains(key))) {
    return Status(Code::kResourceExhausted,
                  fmt::format("a session keeps at most {} settings of at most {} bytes",
                              kMostSettings, kMostBytes))
        .SqlState("54000");
  }
  if (name == "client_encoding") {
    if (!IsUtf8Encoding(value)) {
      return Unimplemented(fmt::format("SQLite's texts are UTF-8, and not {}", value))
          .Hint("SET client_encoding = 'UTF8' (\\encoding UTF8 in psql)");
    }
    value = "UTF8";
  }
  if (name == "standard_conforming_strings" && value != "on" && value != "true" && value != "1") {
    return Unimplemented("SQLite reads a backslash as itself")
        .Hint("standard_conforming_strings stays on");
  }
  if (LowerAscii(value) == "default") {
    return Reset(name);
  }
  if (name == kSilence && !ReadMillis(value, 1).has_value()) {
    return InvalidArgument(fmt::format("invalid value for parameter \"{}\": \"{}\"", name, value))
        .Hint("a whole number of ms, s, min, h or d, as in '30s'");
  }
  if (name == "datestyle") {
    value = "ISO, MDY";  // dates are stored as texts
  }
  if (local) {
    const auto known = values_.find(key);
    local_.try_emplace(key, known == values_.end() ? std::nullopt : std::optional(known->second));
  }
  values_[key] = std::move(value);
  return OkStatus();
}

std::chrono::milliseconds SessionSettings::MostSilence() const {
  const std::chrono::milliseconds set(ReadMillis(values_.at(std::string(kSilence)), 1).value_or(0));
  return set.count() > 0 ? std::min(set, kMostSilence) : kMostSilence;
}

Status SessionSettings::Reset(std::string_view name) {
  if (name.empty()) {
    values_ = first_;
    return OkStatus();
  }
  const auto first = first_.find(std::string(name));
  if (first == first_.end()) {
    values_.erase(std::string(name));
  } else {
    values_[first->first] = first->second;
  }
  return OkStatus();
}

std::optional<std::string> SessionSettings::Get(std::string_view name) const {
  const auto found = values_.find(std::string(name));
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

void SessionSettings::Begin() {
  before_ = values_;
  local_.clear();
}

void SessionSettings::End(bool committed) {
  if (!committed) {
    values_ = before_;
  } else {
    for (const auto& [name, value] : local_) {
      if (value.has_value()) {
        values_[name] = *value;
      } else {
        values_.erase(name);
      }
    }
  }
  local_.clear();
}

std::vector<std::pair<std::string, std::string>> SessionSettings::Reported() const {
  std::vector<std::pair<std::string, std::string>> reported;
  for (const std::string_view name : kReported) {
    const auto found = values_.find(LowerAscii(name));
    reported.emplace_back(name, found == values_.end() ? "" : found->second);
  }
  return reported;
}

std::vector<std::pair<std::string, std::string>> SessionSettings::TakeChanged() {
  std::vector<std::pair<std::string, std::string>> changed;
  for (auto& [name, value] : Reported()) {
    std::string& told = told_[name];
    if (told != value) {
      told = value;
      changed.emplace_back(name, value);
    }
  }
  return changed;
}

}  // namespace sluice::server::pgwire
