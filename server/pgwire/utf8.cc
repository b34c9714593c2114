#include "server/pgwire/utf8_internal.h"

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

}  // namespace sluice::server::pgwire
