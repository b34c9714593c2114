#include "k8s/quantity/quantity.h"

#include <fmt/core.h>

#include <array>
#include <limits>
#include <optional>
#include <tuple>

#include "base/letter_case.h"

namespace sluice::k8s {
namespace {

__extension__ using Wide = __int128;

constexpr int64_t kNano = 1'000'000'000;
constexpr size_t kMaxCharacters = 64;  // of numbers in range, and some more zeros
constexpr int kMaxDigits = 37;         // that a Wide holds

struct Suffix {
  std::string_view text;
  int power = 0;  // exponent of 10 or of 1024
};
constexpr std::array kDecimalSuffixes = {
    Suffix{"n", -9}, Suffix{"u", -6}, Suffix{"m", -3}, Suffix{"", 0},   Suffix{"k", 3},
    Suffix{"M", 6},  Suffix{"G", 9},  Suffix{"T", 12}, Suffix{"P", 15}, Suffix{"E", 18}};
constexpr std::array kBinarySuffixes = {Suffix{"Ki", 1}, Suffix{"Mi", 2}, Suffix{"Gi", 3},
                                        Suffix{"Ti", 4}, Suffix{"Pi", 5}, Suffix{"Ei", 6}};

// The number of billionths; at most 2^63 * 10^9, which is far below the range of Wide.
Wide InNanos(const Quantity& quantity) {
  return static_cast<Wide>(quantity.whole()) * kNano + quantity.nanos();
}

std::string Digits(Wide number) {
  const bool negative = number < 0;
  std::string text;
  do {
    const int digit = static_cast<int>(number % 10);
    text.insert(text.begin(), static_cast<char>('0' + (negative ? -digit : digit)));
    number /= 10;
  } while (number != 0);
  return negative ? "-" + text : text;
}

// What an invalid suffix may have been meant as: GB, gb, KiB, g.
std::string HintOf(std::string_view number, std::string_view suffix) {
  const std::string letter = UpperAscii(suffix.substr(0, 1));
  if (suffix == "K") {
    return fmt::format("write {}k (1000) or {}Ki (1024)", number, number);
  }
  constexpr std::string_view kLarge = "KMGTPE";
  const std::string_view rest = suffix.substr(std::min<size_t>(1, suffix.size()));
  const bool of_bytes = rest.empty() || rest == "b" || rest == "B" || rest == "ib" ||
                        rest == "iB" || rest == "i" || rest == "I" || rest == "IB";
  if (letter.empty() || kLarge.find(letter) == std::string_view::npos || !of_bytes) {
    return "a number, then nothing or one of n u m k M G T P E Ki Mi Gi Ti Pi Ei";
  }
  return fmt::format("write {}{}i (powers of 1024) or {}{} (powers of 1000)", number, letter,
                     number, letter == "K" ? "k" : letter);
}

bool IsDigit(char character) {
  return character >= '0' && character <= '9';
}

struct Parts {
  bool negative = false;
  Wide digits = 0;  // without the point
  int scale = 0;    // how many of them follow the point
  std::string_view number, suffix;
};

std::optional<Parts> Split(std::string_view text) {
  Parts parts;
  size_t at = 0;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    parts.negative = text[0] == '-';
    at = 1;
  }
  bool point = false;
  int count = 0, significant = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '.' && !point) {
      point = true;
      continue;
    }
    if (!IsDigit(text[at])) {
      break;
    }
    ++count;
    significant += significant > 0 || text[at] != '0' ? 1 : 0;
    if (significant > kMaxDigits) {
      return std::nullopt;
    }
    parts.digits = parts.digits * 10 + (text[at] - '0');
    parts.scale += point ? 1 : 0;
  }
  if (count == 0) {
    return std::nullopt;
  }
  parts.number = text.substr(0, at);
  parts.suffix = text.substr(at);
  return parts;
}

struct Unit {
  Quantity::Form form = Quantity::Form::kDecimal;
  int power = 0;
};

std::optional<Unit> UnitOf(std::string_view suffix) {
  for (const Suffix& each : kDecimalSuffixes) {
    if (suffix == each.text) {
      return Unit{Quantity::Form::kDecimal, each.power};
    }
  }
  for (const Suffix& each : kBinarySuffixes) {
    if (suffix == each.text) {
      return Unit{Quantity::Form::kBinary, each.power};
    }
  }
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) {
    return std::nullopt;
  }
  std::string_view digits = suffix.substr(1);
  const bool negative = digits[0] == '-';
  if (digits[0] == '-' || digits[0] == '+') {
    digits.remove_prefix(1);
  }
  int power = 0;
  for (const char digit : digits) {
    if (!IsDigit(digit) || power > 1000) {
      return std::nullopt;
    }
    power = power * 10 + (digit - '0');
  }
  if (digits.empty()) {
    return std::nullopt;
  }
  return Unit{Quantity::Form::kExponent, negative ? -power : power};
}

constexpr Wide kMaxNanos = static_cast<Wide>(std::numeric_limits<int64_t>::max()) * kNano;

// nullopt: exceeds kMaxNanos.
std::optional<Wide> Times(Wide number, int factor, int times) {
  for (int i = 0; i < times && number != 0; ++i) {
    if (number > kMaxNanos / factor) {
      return std::nullopt;
    }
    number *= factor;
  }
  return number;
}

Status NotAQuantity(std::string_view text, const std::string& hint) {
  return InvalidArgument(
             fmt::format("'{}' is not a Kubernetes quantity", text.substr(0, kMaxCharacters)))
      .Hint(hint);
}

}  // namespace

Quantity Quantity::OfMillis(int64_t millis) {
  Quantity quantity;
  quantity.whole_ = millis / 1000 - (millis % 1000 < 0 ? 1 : 0);
  quantity.nanos_ = static_cast<int32_t>((millis - quantity.whole_ * 1000) * 1'000'000);
  return quantity;
}

Quantity Quantity::OfBytes(int64_t bytes) {
  Quantity quantity;
  quantity.whole_ = bytes;
  quantity.form_ = Form::kBinary;
  return quantity;
}

double Quantity::AsDouble() const {
  return static_cast<double>(whole_) + static_cast<double>(nanos_) / static_cast<double>(kNano);
}

int64_t Quantity::RoundedUp() const {
  return nanos_ > 0 && whole_ < std::numeric_limits<int64_t>::max() ? whole_ + 1 : whole_;
}

bool Quantity::operator==(const Quantity& other) const {
  return whole_ == other.whole_ && nanos_ == other.nanos_;
}

bool Quantity::operator<(const Quantity& other) const {
  return std::tie(whole_, nanos_) < std::tie(other.whole_, other.nanos_);
}

std::string Quantity::ToString() const {
  Wide nanos = InNanos(*this);
  if (nanos == 0) {
    return "0";
  }
  const Wide size = nanos < 0 ? -nanos : nanos;
  const Wide kibi = static_cast<Wide>(1024) * kNano;
  if (form_ == Form::kBinary && nanos_ == 0 && size >= kibi) {
    Wide whole = whole_;
    std::string_view suffix;
    for (const Suffix& each : kBinarySuffixes) {
      if (whole % 1024 != 0) {
        break;
      }
      whole /= 1024;
      suffix = each.text;
    }
    return Digits(whole) + std::string(suffix);
  }
  int power = -9;
  while (power < 18 && nanos % 1000 == 0) {
    nanos /= 1000;
    power += 3;
  }
  if (form_ == Form::kExponent) {
    return power == 0 ? Digits(nanos) : fmt::format("{}e{}", Digits(nanos), power);
  }
  const int suffix = power / 3 + 3;
  return Digits(nanos) + std::string(kDecimalSuffixes[static_cast<size_t>(suffix)].text);
}

Result<Quantity> ParseQuantity(std::string_view text) {
  const std::optional<Parts> parts =
      text.size() <= kMaxCharacters ? Split(text) : std::optional<Parts>();
  if (!parts) {
    return NotAQuantity(text, "for instance 2, 0.5, 500m, 4Gi");
  }
  const std::optional<Unit> unit = UnitOf(parts->suffix);
  if (!unit) {
    return NotAQuantity(text, HintOf(parts->number, parts->suffix));
  }
  const bool binary = unit->form == Quantity::Form::kBinary;
  const Status too_large =
      InvalidArgument(fmt::format("the quantity '{}' is larger than 2^63-1", text));
  // Billionths = digits * 10^(9 - scale) * 10^power, or * 1024^power.
  std::optional<Wide> nanos = parts->digits;
  int tens = 9 - parts->scale + (binary ? 0 : unit->power);
  if (binary) {
    // Not beyond the range of Wide yet: a number with many digits after the point becomes small
    // again.
    while (tens < 0 && *nanos % 10 == 0 && *nanos != 0) {
      *nanos /= 10;
      ++tens;
    }
    for (int i = 0; i < unit->power; ++i) {
      constexpr Wide kMax = static_cast<Wide>(~static_cast<uint64_t>(0)) << 62;
      if (*nanos > kMax / 1024) {
        return too_large;
      }
      *nanos *= 1024;
    }
  }
  for (; tens < 0 && *nanos != 0; ++tens) {
    if (*nanos % 10 != 0) {
      return InvalidArgument(
          fmt::format("the quantity '{}' is not a whole number of billionths", text));
    }
    *nanos /= 10;
  }
  nanos = Times(*nanos, 10, tens);
  if (!nanos || *nanos > kMaxNanos) {
    return too_large;
  }
  const Wide value = parts->negative ? -*nanos : *nanos;
  Quantity quantity;
  const Wide below = value % kNano < 0 ? 1 : 0;
  quantity.whole_ = static_cast<int64_t>(value / kNano - below);
  quantity.nanos_ = static_cast<int32_t>(value % kNano + below * kNano);
  quantity.form_ = unit->form;
  return quantity;
}

}  // namespace sluice::k8s
