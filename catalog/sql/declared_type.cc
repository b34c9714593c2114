#include "catalog/sql/declared_type.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "base/letter_case.h"
#include "catalog/sql/sql_text.h"

namespace sluice::catalog {
namespace {

struct Named {
  std::string_view name;
  uint32_t oid;
};
constexpr std::array kNamed = {
    Named{"bool", 16},
    Named{"boolean", 16},
    Named{"bytea", 17},
    Named{"\"char\"", 18},
    Named{"name", 19},
    Named{"int2vector", 22},
    Named{"regproc", 24},
    Named{"oid", 26},
    Named{"oidvector", 30},
    Named{"json", 114},
    Named{"date", 1082},
    Named{"time", 1083},
    Named{"time without time zone", 1083},
    Named{"timestamp", 1114},
    Named{"datetime", 1114},
    Named{"timestamp without time zone", 1114},
    Named{"timestamptz", 1184},
    Named{"timestamp with time zone", 1184},
    Named{"interval", 1186},
    Named{"numeric", 1700},
    Named{"decimal", 1700},
    Named{"uuid", 2950},
    Named{"jsonb", 3802},
    Named{"varchar", 1043},
    Named{"character varying", 1043},
    Named{"text[]", 1009},
    Named{"name[]", 1003},
    Named{"oid[]", 1028},
    Named{"smallint[]", 1005},
    Named{"integer[]", 1007},
    Named{"char[]", 1002},
    Named{"real[]", 1021},
};

// The header of a text of limited length, and of a numeric, in their modifiers.
constexpr int32_t kModifierHeader = 4;
constexpr uint32_t kNumeric = 1700;
constexpr uint32_t kVarchar = 1043;
constexpr uint32_t kText = 25;
constexpr uint32_t kInt8 = 20;
constexpr uint32_t kFloat8 = 701;
constexpr uint32_t kBytea = 17;

int32_t Number(std::string_view text) {
  int32_t number = -1;
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

int32_t ModifierOf(uint32_t oid, std::string_view arguments) {
  const int32_t first = Number(arguments);
  constexpr int32_t kMax = 10485760;  // of a varchar
  if (first <= 0 || first > kMax) {
    return -1;
  }
  if (oid == kVarchar) {
    return first + kModifierHeader;
  }
  constexpr int32_t kMaxDigits = 1000;
  if (oid != kNumeric || first > kMaxDigits) {
    return -1;
  }
  const size_t comma = arguments.find(',');
  const int32_t scale = comma == std::string_view::npos ? 0 : Number(arguments.substr(comma + 1));
  constexpr int kScaleBits = 16;
  return scale < 0 || scale > first ? -1 : ((first << kScaleBits) | scale) + kModifierHeader;
}

}  // namespace

DeclaredType PostgresTypeOf(std::string_view declared) {
  std::string text = LowerAscii(declared);
  std::string arguments;
  const size_t open = text.find('(');
  if (open != std::string::npos) {
    const size_t close = std::min(text.find(')', open), text.size());
    arguments = text.substr(open + 1, close - open - 1);
    text.erase(open, close + 1 - open);
  }
  if (text.ends_with("[]\"")) {  // of the catalogs, whose array types need quotes
    std::erase(text, '"');
  }
  while (!text.empty() && text.back() == ' ') {
    text.pop_back();
  }
  for (const Named& named : kNamed) {
    if (named.name == text) {
      return {named.oid, ModifierOf(named.oid, arguments)};
    }
  }
  if (text.empty()) {
    return {};
  }
  // SQLite's own rules for the affinity of a declared type.
  const auto says = [&text](std::string_view part) { return text.find(part) != std::string::npos; };
  if (says("int") || text == "serial" || text == "bigserial") {
    return {kInt8};
  }
  if (says("char") || says("clob") || says("text")) {
    return {kText};
  }
  if (says("blob") || says("binary")) {
    return {kBytea};
  }
  if (says("real") || says("floa") || says("doub")) {
    return {kFloat8};
  }
  return {kText};
}

int16_t PostgresTypeBytes(uint32_t oid) {
  switch (oid) {
    case 16:
    case 18:
      return 1;
    case 19:
      return 64;
    case 24:
    case 26:
    case 1082:
      return 4;
    case 20:
    case 701:
    case 1083:
    case 1114:
    case 1184:
      return 8;
    case 1186:
    case 2950:
      return 16;
    default:
      return -1;
  }
}

}  // namespace sluice::catalog
