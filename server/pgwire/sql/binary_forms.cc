#include "server/pgwire/sql/binary_forms_internal.h"

#include <fmt/core.h>

#include <array>
#include <bit>
#include <charconv>

#include "server/pgwire/sql/column_types.h"

namespace sluice::server::pgwire {
namespace {

constexpr char kJsonbVersion = 1;
constexpr size_t kUuidBytes = 16;

template <typename Integer>
std::optional<Integer> ParseWhole(std::string_view text) {
  Integer number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

int OctalDigit(char c) {
  return c >= '0' && c <= '7' ? c - '0' : -1;
}

bool AppendHexBytes(std::string_view digits, std::string* out) {
  if (digits.size() % 2 != 0) {
    return false;
  }
  for (size_t i = 0; i < digits.size(); i += 2) {
    const int high = catalog::HexDigit(digits[i]);
    const int low = catalog::HexDigit(digits[i + 1]);
    if (high < 0 || low < 0) {
      return false;
    }
    *out += static_cast<char>(high * 16 + low);
  }
  return true;
}

// "\x0aff", or the older form: "a\\\012".
bool AppendByteaBytes(std::string_view text, std::string* out) {
  if (text.starts_with("\\x")) {
    return AppendHexBytes(text.substr(2), out);
  }
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      *out += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == '\\') {
      *out += '\\';
      ++i;
    } else if (i + 3 < text.size() && OctalDigit(text[i + 1]) >= 0 && text[i + 1] < '4' &&
               OctalDigit(text[i + 2]) >= 0 && OctalDigit(text[i + 3]) >= 0) {
      *out += static_cast<char>(OctalDigit(text[i + 1]) * 64 + OctalDigit(text[i + 2]) * 8 +
                                OctalDigit(text[i + 3]));
      i += 3;
    } else {
      return false;
    }
  }
  return true;
}

bool AppendUuidBytes(std::string_view text, std::string* out) {
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
    if (hyphen != (text[i] == '-')) {
      return false;
    }
    if (!hyphen) {
      digits += text[i];
    }
  }
  return digits.size() == kUuidBytes * 2 && AppendHexBytes(digits, out);
}

std::string HexOf(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    text += {kDigits[byte >> 4U], kDigits[byte & 0xFU]};
  }
  return text;
}

// False: the text is not a value of the type, which must have a binary form known here and not be
// an array.
bool AppendScalar(uint32_t oid, std::string_view text, std::string* out) {
  const auto put = [out](const auto& number) {
    if (number.has_value()) {
      AppendBigEndian(*number, out);
    }
    return number.has_value();
  };
  switch (oid) {
    case kBoolOid: {
      const bool is_true = text == "t" || text == "true";
      *out += is_true ? '\1' : '\0';
      return is_true || text == "f" || text == "false";
    }
    case kInt2Oid:
      return put(ParseWhole<int16_t>(text));
    case kInt4Oid:
      return put(ParseWhole<int32_t>(text));
    case kInt8Oid:
      return put(ParseWhole<int64_t>(text));
    case kOidOid:
      return put(ParseWhole<uint32_t>(text));
    case kFloat4Oid: {
      const std::optional<float> number = ParseFloatText(text);
      AppendBigEndian(std::bit_cast<uint32_t>(number.value_or(0)), out);
      return number.has_value();
    }
    case kFloat8Oid: {
      const std::optional<double> number = ParseDoubleText(text);
      AppendBigEndian(std::bit_cast<uint64_t>(number.value_or(0)), out);
      return number.has_value();
    }
    case kDateOid:
      return put(ParsePostgresDate(text));
    case kTimestampOid:
    case kTimestamptzOid:
      return put(ParsePostgresTimestamp(text));
    case kTimeOid:
    case kTimetzOid: {
      const std::optional<ClockTime> time = ParsePostgresTime(text);
      AppendBigEndian<int64_t>(time ? time->micros : 0, out);
      if (oid == kTimetzOid) {
        AppendBigEndian<int32_t>(time ? time->seconds_west : 0, out);
      }
      return time.has_value() && (oid == kTimetzOid || time->seconds_west == 0);
    }
    case kIntervalOid: {
      const std::optional<Interval> interval = ParsePostgresInterval(text);
      AppendBigEndian<int64_t>(interval ? interval->micros : 0, out);
      AppendBigEndian<int32_t>(interval ? interval->days : 0, out);
      AppendBigEndian<int32_t>(interval ? interval->months : 0, out);
      return interval.has_value();
    }
    case kUuidOid:
      return AppendUuidBytes(text, out);
    case kByteaOid:
      return AppendByteaBytes(text, out);
    case kNumericOid:
      return AppendNumeric(text, out).ok();
    case kCharOid:
      *out += text.empty() ? '\0' : text.front();
      return text.size() <= 1;
    case kJsonbOid:
      *out += kJsonbVersion;
      break;
    default:
      break;
  }
  *out += text;
  return true;
}

}  // namespace

Status NotOfType(uint32_t oid) {
  const BuiltInType* type = FindBuiltInType(oid);
  return InvalidArgument(fmt::format("incorrect binary data format of type {}",
                                     type != nullptr ? type->name : "array"))
      .SqlState("22P03");
}

Status AppendBinary(uint32_t oid, std::string_view text, std::string* out) {
  if (const BuiltInType* element = FindElementType(oid)) {
    ASSIGN_OR_RETURN(const ArrayValue array, ParseArrayText(text));
    return AppendArrayBinary(element->oid, array, out);
  }
  if (AppendScalar(oid, text, out)) {
    return OkStatus();
  }
  return InvalidArgument(
             fmt::format("\"{:.80}\" has no binary form as {}", text, FindBuiltInType(oid)->name))
      .SqlState("22P03")
      .Hint("take it as text: in the select, column::text (a date or time: SET DateStyle = ISO)");
}

Result<std::string> TextOfBinary(uint32_t oid, std::string_view bytes) {
  if (const BuiltInType* element = FindElementType(oid)) {
    ASSIGN_OR_RETURN(const ArrayValue array, ParseArrayBinary(element->oid, bytes));
    return ArrayText(array);
  }
  BigEndianReader reader(bytes);
  std::string text;
  switch (oid) {
    case kBoolOid:
      text = bytes == std::string_view("\0", 1) ? "f" : "t";
      reader.Bytes(1);
      break;
    case kInt2Oid:
      text = fmt::format("{}", reader.Take<int16_t>());
      break;
    case kInt4Oid:
      text = fmt::format("{}", reader.Take<int32_t>());
      break;
    case kInt8Oid:
      text = fmt::format("{}", reader.Take<int64_t>());
      break;
    case kOidOid:
      text = fmt::format("{}", static_cast<uint32_t>(reader.Take<int32_t>()));
      break;
    case kFloat4Oid:
      text = FloatText(std::bit_cast<float>(reader.Take<int32_t>()));
      break;
    case kFloat8Oid:
      text = DoubleText(std::bit_cast<double>(reader.Take<int64_t>()));
      break;
    case kDateOid: {
      const int32_t days = reader.Take<int32_t>();
      if (!IsPostgresDate(days)) {
        return InvalidArgument("date out of range").SqlState("22008");
      }
      text = PostgresDateText(days);
      break;
    }
    case kTimestampOid:
    case kTimestamptzOid: {
      const int64_t micros = reader.Take<int64_t>();
      if (!IsPostgresTimestamp(micros)) {
        return InvalidArgument("timestamp out of range").SqlState("22008");
      }
      text = PostgresTimestampText(micros, oid == kTimestamptzOid);
      break;
    }
    case kTimeOid:
    case kTimetzOid: {
      ClockTime time;
      time.micros = reader.Take<int64_t>();
      time.seconds_west = oid == kTimetzOid ? reader.Take<int32_t>() : 0;
      if (!IsPostgresTime(time)) {
        return InvalidArgument("time out of range").SqlState("22008");
      }
      text = PostgresTimeText(time, oid == kTimetzOid);
      break;
    }
    case kIntervalOid: {
      Interval interval;
      interval.micros = reader.Take<int64_t>();
      interval.days = reader.Take<int32_t>();
      interval.months = reader.Take<int32_t>();
      if (interval.micros == INT64_MIN) {
        return InvalidArgument("interval out of range").SqlState("22008");
      }
      text = PostgresIntervalText(interval);
      break;
    }
    case kUuidOid:
      text = HexOf(reader.Bytes(kUuidBytes));
      if (reader.ok()) {
        for (const size_t at : {8U, 13U, 18U, 23U}) {
          text.insert(at, "-");
        }
      }
      break;
    case kByteaOid:
      return "\\x" + HexOf(bytes);
    case kNumericOid:
      return TextOfNumeric(bytes);
    case kCharOid:
      text = bytes == std::string_view("\0", 1) ? "" : bytes;
      reader.Bytes(1);
      break;
    case kJsonbOid:
      if (reader.Bytes(1) != std::string_view(&kJsonbVersion, 1)) {
        return NotOfType(oid);
      }
      return std::string(bytes.substr(1));
    default:
      return std::string(bytes);
  }
  if (!reader.at_end()) {
    return NotOfType(oid);
  }
  return text;
}

}  // namespace sluice::server::pgwire
