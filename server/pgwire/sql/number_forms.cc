#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "server/pgwire/sql/binary_forms_internal.h"
#include "server/pgwire/sql/column_types.h"

// Floating-point numbers and numerics.
namespace sluice::server::pgwire {
namespace {

// From these powers of ten on, and below the last, the server writes an exponent.
constexpr double kFirstDoubleOfExponent = 1e15;
constexpr float kFirstFloatOfExponent = 1e6F;
constexpr double kLeastWithoutExponent = 1e-4;

// Where it ends. `out` has room for kMostNumberChars.
template <typename Float>
char* PutShortest(Float number, Float first_of_exponent, char* out) {
  const Float size = std::abs(number);
  if (!std::isfinite(number)) {
    const std::string_view text = std::isnan(number) ? "NaN"
                                  : number > 0       ? "Infinity"
                                                     : "-Infinity";
    return std::copy(text.begin(), text.end(), out);
  }
  const bool plain =
      size == 0 || (size >= static_cast<Float>(kLeastWithoutExponent) && size < first_of_exponent);
  return std::to_chars(out, out + kMostNumberChars, number,
                       plain ? std::chars_format::fixed : std::chars_format::scientific)
      .ptr;
}

template <typename Float>
std::optional<Float> ParseFloat(std::string_view text) {
  if (text == "NaN") {
    return std::numeric_limits<Float>::quiet_NaN();
  }
  if (text == "Infinity" || text == "-Infinity") {
    const Float infinity = std::numeric_limits<Float>::infinity();
    return text.front() == '-' ? -infinity : infinity;
  }
  Float number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() ||
      !std::isfinite(number)) {
    return std::nullopt;
  }
  return number;
}

// Each digit of a numeric holds four decimal digits.
constexpr size_t kDigitsOfGroup = 4;
constexpr int kBase = 10'000;
constexpr uint16_t kNegative = 0x4000;
constexpr uint16_t kNumericNan = 0xC000;
constexpr uint16_t kNumericInfinity = 0xD000;
constexpr uint16_t kNumericMinusInfinity = 0xF000;
constexpr size_t kScaleOfInfinity = 32;         // as the server sends it; without meaning
constexpr int kMostScale = 0x3FFF;              // NUMERIC_DSCALE_MAX
constexpr size_t kMostNumericDigits = 150'000;  // 131072 before the point, 16383 after it
constexpr int kMostExponent = 400;              // of a double

struct Decimal {
  bool negative = false;
  std::string whole;     // digits without leading zeros
  std::string fraction;  // as many as are shown
};

bool TakeDigits(std::string_view& text, std::string* digits) {
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    *digits += text.front();
    text.remove_prefix(1);
  }
  return digits->size() <= kMostNumericDigits;
}

// Moves the point `exponent` places to the right.
void Shift(int exponent, Decimal* decimal) {
  std::string& from = exponent > 0 ? decimal->fraction : decimal->whole;
  for (int i = 0; i < std::abs(exponent); ++i) {
    if (exponent > 0) {
      decimal->whole += from.empty() ? '0' : from.front();
      from.erase(0, from.empty() ? 0 : 1);
    } else {
      decimal->fraction.insert(0, 1, from.empty() ? '0' : from.back());
      from.resize(from.empty() ? 0 : from.size() - 1);
    }
  }
}

std::optional<Decimal> ParseDecimal(std::string_view text) {
  Decimal decimal;
  decimal.negative = text.starts_with('-');
  text.remove_prefix(decimal.negative ? 1 : 0);
  if (!TakeDigits(text, &decimal.whole)) {
    return std::nullopt;
  }
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (!TakeDigits(text, &decimal.fraction)) {
      return std::nullopt;
    }
  }
  if (decimal.whole.empty() && decimal.fraction.empty()) {
    return std::nullopt;
  }
  if (text.starts_with('e')) {
    const size_t sign = text.starts_with("e+") ? 2 : 1;
    int exponent = 0;
    const auto parsed = std::from_chars(text.data() + sign, text.data() + text.size(), exponent);
    if (parsed.ec != std::errc() || std::abs(exponent) > kMostExponent) {
      return std::nullopt;
    }
    text.remove_prefix(static_cast<size_t>(parsed.ptr - text.data()));
    Shift(exponent, &decimal);
  }
  if (!text.empty() || decimal.fraction.size() > static_cast<size_t>(kMostScale)) {
    return std::nullopt;
  }
  decimal.whole.erase(0, std::min(decimal.whole.find_first_not_of('0'), decimal.whole.size()));
  return decimal;
}

void AppendNumericHeader(size_t groups, int weight, uint16_t sign, size_t scale, std::string* out) {
  AppendBigEndian<int16_t>(static_cast<int16_t>(groups), out);
  AppendBigEndian<int16_t>(static_cast<int16_t>(weight), out);
  AppendBigEndian<int16_t>(static_cast<int16_t>(sign), out);
  AppendBigEndian<int16_t>(static_cast<int16_t>(scale), out);
}

}  // namespace

char* PutDouble(double number, char* out) {
  return PutShortest(number, kFirstDoubleOfExponent, out);
}

std::string DoubleText(double number) {
  std::array<char, kMostNumberChars> text{};
  return {text.data(), PutDouble(number, text.data())};
}

std::string FloatText(float number) {
  std::array<char, kMostNumberChars> text{};
  return {text.data(), PutShortest(number, kFirstFloatOfExponent, text.data())};
}

std::optional<double> ParseDoubleText(std::string_view text) {
  return ParseFloat<double>(text);
}

std::optional<float> ParseFloatText(std::string_view text) {
  return ParseFloat<float>(text);
}

Status AppendNumeric(std::string_view text, std::string* out) {
  if (text == "NaN" || text == "Infinity" || text == "-Infinity") {
    const bool nan = text == "NaN";
    AppendNumericHeader(0, 0,
                        nan                  ? kNumericNan
                        : text == "Infinity" ? kNumericInfinity
                                             : kNumericMinusInfinity,
                        nan ? 0 : kScaleOfInfinity, out);
    return OkStatus();
  }
  std::optional<Decimal> decimal = ParseDecimal(text);
  if (!decimal.has_value()) {
    return NotOfType(kNumericOid);
  }
  const size_t scale = decimal->fraction.size();
  const size_t fill = (kDigitsOfGroup - decimal->whole.size() % kDigitsOfGroup) % kDigitsOfGroup;
  std::string digits = std::string(fill, '0') + decimal->whole;
  int weight = static_cast<int>(digits.size() / kDigitsOfGroup) - 1;
  digits += decimal->fraction;
  digits.append((kDigitsOfGroup - digits.size() % kDigitsOfGroup) % kDigitsOfGroup, '0');
  std::vector<int> groups;
  for (size_t i = 0; i < digits.size(); i += kDigitsOfGroup) {
    int group = 0;
    for (size_t j = 0; j < kDigitsOfGroup; ++j) {
      group = group * 10 + (digits[i + j] - '0');
    }
    if (group == 0 && groups.empty()) {
      --weight;
    } else {
      groups.push_back(group);
    }
  }
  while (!groups.empty() && groups.back() == 0) {
    groups.pop_back();
  }
  const bool zero = groups.empty();
  AppendNumericHeader(groups.size(), zero ? 0 : weight, decimal->negative && !zero ? kNegative : 0,
                      scale, out);
  for (const int group : groups) {
    AppendBigEndian<int16_t>(static_cast<int16_t>(group), out);
  }
  return OkStatus();
}

Result<std::string> TextOfNumeric(std::string_view bytes) {
  BigEndianReader reader(bytes);
  const int16_t count = reader.Take<int16_t>();
  const int weight = reader.Take<int16_t>();
  const auto sign = static_cast<uint16_t>(reader.Take<int16_t>());
  const int scale = reader.Take<int16_t>();
  if (!reader.ok() || count < 0 || scale < 0 || scale > kMostScale ||
      reader.left() != static_cast<size_t>(count) * 2) {
    return NotOfType(kNumericOid);
  }
  std::vector<int> groups;
  bool zero = true;
  for (int i = 0; i < count; ++i) {
    groups.push_back(reader.Take<int16_t>());
    if (groups.back() < 0 || groups.back() >= kBase) {
      return NotOfType(kNumericOid);
    }
    zero = zero && groups.back() == 0;
  }
  switch (sign) {
    case kNumericNan:
      return std::string("NaN");
    case kNumericInfinity:
      return std::string("Infinity");
    case kNumericMinusInfinity:
      return std::string("-Infinity");
    case 0:
    case kNegative:
      break;
    default:
      return NotOfType(kNumericOid);
  }
  const auto group_at = [&groups, weight](int power) {  // of the base
    const int i = weight - power;
    return i >= 0 && i < static_cast<int>(groups.size()) ? groups[static_cast<size_t>(i)] : 0;
  };
  std::string text;
  for (int power = zero ? -1 : weight; power >= 0; --power) {
    text += fmt::format("{:04}", group_at(power));
  }
  text.erase(0, std::min(text.find_first_not_of('0'), text.size()));
  if (text.empty()) {
    text = "0";
  }
  if (scale > 0) {
    std::string fraction;
    for (int power = -1; fraction.size() < static_cast<size_t>(scale); --power) {
      fraction += fmt::format("{:04}", group_at(power));
    }
    fraction.resize(static_cast<size_t>(scale));
    text += "." + fraction;
  }
  const bool nothing = text.find_first_not_of("0.") == std::string::npos;
  return (sign == kNegative && !nothing ? "-" : "") + text;
}

}  // namespace sluice::server::pgwire
