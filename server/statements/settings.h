#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "parser/ast.h"
#include "planner/planner.h"

namespace sluice::server {

enum class OnDisconnect : int { kCancel, kDetach };

// The session's settings that concern its doors; those that concern plans are in planner::Options.
struct SessionSettings {
  static constexpr int64_t kNoticeMillis = 1'000;
  // Shortest time between progress notices; nullopt: no notices.
  std::optional<int64_t> progress_interval_ms = kNoticeMillis;
  // The database's client_min_messages suppresses NOTICE.
  bool quiet = false;
  // TRAIN, PREDICT INTO and EVALUATE INTO return at once, with the job.
  bool async = false;
  // What happens to the running statement when its client disconnects.
  OnDisconnect on_disconnect = OnDisconnect::kCancel;
};

// A session variable, declared once: SET validates with it, and the reference prints it.
struct SettingSpec {
  enum class Kind : int { kInteger, kFlag, kWord, kDuration };

  std::string name;  // "sluice.seed"
  Kind kind = Kind::kInteger;
  std::vector<std::string> words;  // kWord: allowed words; kDuration: also allowed
  int64_t min = 0, max = 0;        // kInteger; kDuration: in milliseconds
  std::string doc;
  // `value`: the number, 0 or 1, the duration in milliseconds, or -1 - i for the i-th word.
  void (*apply)(int64_t value, planner::Options& options, SessionSettings& settings) = nullptr;
  int64_t (*current)(const planner::Options& options, const SessionSettings& settings) = nullptr;
};
const std::vector<SettingSpec>& Settings();

// NotFound (42704) suggests the nearest name.
Result<const SettingSpec*> FindSetting(const parser::Name& name);

// The value for `apply`. 22023 lists what is allowed. Durations: 5 and '5s' are seconds; ms, s,
// min, h and d are units.
Result<int64_t> ReadSettingValue(const SettingSpec& setting, const parser::AttributeValue& value);
// Whether SET accepts the value; DEFAULT is allowed, too.
Status CheckSettingValue(const SettingSpec& setting, const parser::AttributeValue& value);
// "7", "on", "cancel", "500ms": a form that SET accepts.
std::string SettingText(const SettingSpec& setting, int64_t value);
// "an integer from 1 to 1024", "on or off".
std::string AllowedValues(const SettingSpec& setting);

}  // namespace sluice::server
