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

// What a session has SET for its doors; what it has SET for plans is in planner::Options.
struct SessionSettings {
  static constexpr int64_t kNoticeMillis = 1'000;
  // Progress is told at most so often; nullopt: not at all.
  std::optional<int64_t> progress_interval_ms = kNoticeMillis;
  // The database's client_min_messages lets no NOTICE through.
  bool quiet = false;
  // TRAIN, PREDICT INTO and EVALUATE INTO answer at once, with the job.
  bool async = false;
  // What becomes of the statement of a client that goes away.
  OnDisconnect on_disconnect = OnDisconnect::kCancel;
};

// A session variable, declared once: SET validates with it, the reference prints it.
struct SettingSpec {
  enum class Kind : int { kInteger, kFlag, kWord, kDuration };

  std::string name;  // "sluice.seed"
  Kind kind = Kind::kInteger;
  std::vector<std::string> words;  // kWord: what it may be; kDuration: what it may be as well
  int64_t min = 0, max = 0;        // kInteger; kDuration: in milliseconds
  std::string doc;
  // The number, 0 or 1, the duration in milliseconds, or -1 - i for the i-th word.
  void (*apply)(int64_t value, planner::Options& options, SessionSettings& settings) = nullptr;
  int64_t (*current)(const planner::Options& options, const SessionSettings& settings) = nullptr;
};
const std::vector<SettingSpec>& Settings();

// NotFound (42704) with the nearest name.
Result<const SettingSpec*> FindSetting(const parser::Name& name);

// What `apply` takes. 22023 says what is allowed. Durations: 5 and '5s' are seconds; ms, s, min, h
// and d are units.
Result<int64_t> ReadSettingValue(const SettingSpec& setting, const parser::AttributeValue& value);
// Whether SET may: DEFAULT is allowed, too.
Status CheckSettingValue(const SettingSpec& setting, const parser::AttributeValue& value);
// "7", "on", "cancel", "500ms": SET takes it back.
std::string SettingText(const SettingSpec& setting, int64_t value);
// "an integer from 1 to 1024", "on or off".
std::string AllowedValues(const SettingSpec& setting);

}  // namespace sluice::server
