#include "server/pgwire/sql/utf8_internal.h"

namespace sluice::server::pgwire {

std::optional<std::vector<uint32_t>> DecodeUtf8(std::string_view text) {
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};  // by length
  std::vector<uint32_t> decoded;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xC0 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (length == 0 || lead > 0xF4 || length > text.size() - i) {
      return std::nullopt;
    }
    uint32_t c = length == 1 ? lead : lead & (0xFFU >> (length + 1));
    for (size_t j = 1; j < length; ++j) {
      const auto next = static_cast<unsigned char>(text[i + j]);
      if ((next & 0xC0U) != 0x80U) {
        return std::nullopt;
      }
      c = c << 6U | (next & 0x3FU);
    }
    if (c < kSmallest[length] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) {
      return std::nullopt;
    }
    decoded.push_back(c);
    i += length;
  }
  return decoded;
}

bool IsShowable(std::string_view text) {
  // All of it, so that many bytes are looked at together.
  unsigned char high = 0;
  bool zero = false;
  for (const char byte : text) {
    high |= static_cast<unsigned char>(byte);
    zero |= byte == 0;
  }
  constexpr unsigned char kNotAscii = 0x80;
  return !zero && ((high & kNotAscii) == 0 || DecodeUtf8(text).has_value());
}

std::string HexText(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr unsigned kNibble = 4;
  std::string hex = "\\x";
  hex.reserve(2 + 2 * bytes.size());
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    hex += kDigits[value >> kNibble];
    hex += kDigits[value & 0x0FU];
  }
  return hex;
}

}  // namespace sluice::server::pgwire
