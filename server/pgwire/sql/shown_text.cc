#include "server/pgwire/sql/shown_text_internal.h"

#include "base/utf8.h"

namespace sluice::server::pgwire {

bool IsShowable(std::string_view text) {
  return text.find('\0') == std::string_view::npos && IsUtf8(text);
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
