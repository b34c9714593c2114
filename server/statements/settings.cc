#include "server/statements/settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/duration.h"
#include "base/letter_case.h"
#include "parser/keywords.h"
#include "parser/printer.h"

namespace sluice::server {
namespace {

using Kind = SettingSpec::Kind;
using parser::AttributeValue;

constexpr int kMaxCpus = 1024;  // larger numbers are taken for typing errors
constexpr int64_t kShortestProgressMillis = 100;

std::vector<SettingSpec> MakeSettings() {
  std::vector<SettingSpec> settings;
  const auto add = [&settings](std::string name, Kind kind, std::vector<std::string> words,
                               int64_t min, int64_t max, std::string doc, auto apply,
                               auto current) {
    settings.push_back(
        {std::move(name), kind, std::move(words), min, max, std::move(doc), apply, current});
  };
  add(
      "sluice.seed", Kind::kInteger, {}, 0, std::numeric_limits<int64_t>::max(),
      "seed of trainings that give none (engine.seed overrules)",
      [](int64_t value, planner::Options& options, SessionSettings&) {
        options.default_seed = static_cast<uint64_t>(value);
      },
      [](const planner::Options& options, const SessionSettings&) {
        return static_cast<int64_t>(options.default_seed);
      });
  add(
      "sluice.local_cpus", Kind::kInteger, {}, 1, kMaxCpus,
      "processors that plans of this session may count on",
      [](int64_t value, planner::Options& options, SessionSettings&) {
        options.local_cpus = static_cast<int>(value);
      },
      [](const planner::Options& options, const SessionSettings&) {
        return int64_t{options.local_cpus};
      });
  add(
      "sluice.in_process_work", Kind::kInteger, {}, 0, std::numeric_limits<int64_t>::max(),
      "rows x columns x epochs below which a training starts no process",
      [](int64_t value, planner::Options& options, SessionSettings&) {
        options.in_process_work = value;
      },
      [](const planner::Options& options, const SessionSettings&) {
        return options.in_process_work;
      });
  add(
      "sluice.progress", Kind::kDuration, {"off", "notice"}, kShortestProgressMillis, kMillisOfDay,
      "how often a client is told of a statement's progress; notice: once a second",
      [](int64_t value, planner::Options&, SessionSettings& session) {
        session.progress_interval_ms =
            value == -1 ? std::nullopt
                        : std::optional(value == -2 ? SessionSettings::kNoticeMillis : value);
      },
      [](const planner::Options&, const SessionSettings& session) -> int64_t {
        const int64_t interval = session.progress_interval_ms.value_or(-1);
        return interval == SessionSettings::kNoticeMillis ? -2 : interval;
      });
  add(
      "sluice.async", Kind::kFlag, {}, 0, 1,
      "TRAIN, PREDICT INTO and EVALUATE INTO answer at once, with the number of their job",
      [](int64_t value, planner::Options&, SessionSettings& session) {
        session.async = value != 0;
      },
      [](const planner::Options&, const SessionSettings& session) {
        return int64_t{session.async ? 1 : 0};
      });
  add(
      "sluice.on_disconnect", Kind::kWord, {"cancel", "detach"}, 0, 0,
      "what becomes of a statement whose client goes away",
      [](int64_t value, planner::Options&, SessionSettings& session) {
        session.on_disconnect = value == -1 ? OnDisconnect::kCancel : OnDisconnect::kDetach;
      },
      [](const planner::Options&, const SessionSettings& session) {
        return int64_t{session.on_disconnect == OnDisconnect::kCancel ? -1 : -2};
      });
  return settings;
}

// The text of a word or a string; "" for other values.
std::string TextOf(const AttributeValue& value) {
  if (const auto* word = std::get_if<AttributeValue::Word>(&value.value)) {
    return word->text;
  }
  const auto* text = std::get_if<std::string>(&value.value);
  return text != nullptr ? *text : "";
}

// Clients that quote every value send '7'.
std::optional<int64_t> IntegerOf(const AttributeValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value.value)) {
    return *integer;
  }
  const std::string text = TextOf(value);
  int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  return whole ? std::optional(number) : std::nullopt;
}

std::optional<int64_t> FlagOf(const AttributeValue& value) {
  if (const auto* flag = std::get_if<bool>(&value.value)) {
    return *flag ? 1 : 0;
  }
  const std::string text = TextOf(value);
  for (const std::string_view word : {"on", "true", "yes"}) {
    if (SameIgnoringCase(text, word)) {
      return 1;
    }
  }
  for (const std::string_view word : {"off", "false", "no"}) {
    if (SameIgnoringCase(text, word)) {
      return 0;
    }
  }
  const std::optional<int64_t> number = IntegerOf(value);
  return number.has_value() && (*number == 0 || *number == 1) ? number : std::nullopt;
}

std::optional<int64_t> WordOf(const SettingSpec& setting, const AttributeValue& value) {
  std::string text = TextOf(value);
  if (const auto* flag = std::get_if<bool>(&value.value); flag != nullptr && !*flag) {
    text = "off";
  }
  for (size_t i = 0; i < setting.words.size(); ++i) {
    if (SameIgnoringCase(text, setting.words[i])) {
      return -1 - static_cast<int64_t>(i);
    }
  }
  return std::nullopt;
}

// 5, 0.5, '5s', '500 ms'.
std::optional<int64_t> MillisOf(const AttributeValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value.value)) {
    return RoundedMillis(static_cast<double>(*integer) * kMillisOfSecond);
  }
  if (const auto* real = std::get_if<double>(&value.value)) {
    return RoundedMillis(*real * kMillisOfSecond);
  }
  return ReadMillis(TextOf(value), kMillisOfSecond);
}

std::optional<int64_t> ValueOf(const SettingSpec& setting, const AttributeValue& value) {
  switch (setting.kind) {
    case Kind::kFlag:
      return FlagOf(value);
    case Kind::kWord:
      return WordOf(setting, value);
    case Kind::kDuration:
      if (const std::optional<int64_t> word = WordOf(setting, value)) {
        return word;
      }
      break;
    case Kind::kInteger:
      break;
  }
  const std::optional<int64_t> number =
      setting.kind == Kind::kInteger ? IntegerOf(value) : MillisOf(value);
  return number.has_value() && *number >= setting.min && *number <= setting.max ? number
                                                                                : std::nullopt;
}

}  // namespace

const std::vector<SettingSpec>& Settings() {
  static const std::vector<SettingSpec> settings = MakeSettings();
  return settings;
}

Status CheckSettingValue(const SettingSpec& setting, const parser::AttributeValue& value) {
  const auto* word = std::get_if<AttributeValue::Word>(&value.value);
  const bool unset = word != nullptr && parser::SameWord(word->text, "DEFAULT");
  return unset ? OkStatus() : ReadSettingValue(setting, value).status();
}

Result<const SettingSpec*> FindSetting(const parser::Name& name) {
  std::vector<std::string> names;
  for (const SettingSpec& setting : Settings()) {
    if (SameIgnoringCase(name.text, setting.name)) {
      return &setting;
    }
    names.push_back(setting.name);
  }
  Status unknown = NotFound(fmt::format("no setting '{}'", name.text)).At(name.span);
  if (const auto nearest = NearestName(name.text, names)) {
    return std::move(unknown).Hint(fmt::format("did you mean '{}'?", *nearest));
  }
  std::string known;
  for (const std::string& setting : names) {
    known += (known.empty() ? "" : ", ") + setting;
  }
  return std::move(unknown).Hint("the settings are " + known);
}

Result<int64_t> ReadSettingValue(const SettingSpec& setting, const AttributeValue& value) {
  if (const std::optional<int64_t> read = ValueOf(setting, value)) {
    return *read;
  }
  Status wrong = InvalidArgument(fmt::format("{} must be {}, not {}", setting.name,
                                             AllowedValues(setting), parser::Print(value)))
                     .At(value.span)
                     .Detail(setting.doc);
  const std::string text = TextOf(value);
  const auto nearest = text.empty() ? std::nullopt : NearestName(text, setting.words);
  return nearest ? std::move(wrong).Hint(fmt::format("did you mean '{}'?", *nearest)) : wrong;
}

std::string SettingText(const SettingSpec& setting, int64_t value) {
  if (value < 0 && setting.kind != Kind::kInteger) {
    return setting.words[static_cast<size_t>(-1 - value)];
  }
  switch (setting.kind) {
    case Kind::kFlag:
      return value != 0 ? "on" : "off";
    case Kind::kDuration:
      return MillisText(value);
    case Kind::kInteger:
    case Kind::kWord:
      break;
  }
  return fmt::format("{}", value);
}

std::string AllowedValues(const SettingSpec& setting) {
  std::string words;
  const size_t count = setting.words.size();
  for (size_t i = 0; i < count; ++i) {
    const bool last = i + 1 == count && setting.kind == Kind::kWord;
    words += (i == 0 ? "" : last ? " or " : ", ") + setting.words[i];
  }
  switch (setting.kind) {
    case Kind::kInteger:
      return fmt::format("an integer from {} to {}", setting.min, setting.max);
    case Kind::kFlag:
      return "on or off";
    case Kind::kWord:
      return words;
    case Kind::kDuration:
      break;
  }
  return fmt::format("{}{}a duration from '{}' to '{}'", words, words.empty() ? "" : " or ",
                     MillisText(setting.min), MillisText(setting.max));
}

}  // namespace sluice::server
