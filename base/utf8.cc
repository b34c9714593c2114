#include "base/utf8.h"

#include <fmt/core.h>

namespace sluice {
namespace {

// Printed, they do something other than take a place in the line.
bool IsControl(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0x061C || c == 0x200B || c == 0x200E ||
         c == 0x200F || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x2069) ||
         c == 0xFEFF || (c >= 0xE0000 && c <= 0xE007F);
}

std::string WithoutControls(std::string_view text, bool keep_lines) {
  std::string shown;
  shown.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const auto [code, bytes] = CharacterAt(text, at);
    if (bytes > 0 && !IsControl(code)) {
      shown += text.substr(at, bytes);
    } else if (text[at] == '\n' || text[at] == '\t') {
      const bool line = text[at] == '\n';
      shown += keep_lines ? text.substr(at, 1) : line ? "\\n" : "\\t";
    } else if (code < 0x80) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
    } else {
      shown += fmt::format("\\u{:04x}", static_cast<uint32_t>(code));
    }
    at += bytes == 0 ? 1 : bytes;
  }
  return shown;
}

}  // namespace

Utf8Character CharacterAt(std::string_view text, size_t at) {
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};  // by length
  const auto lead = static_cast<unsigned char>(text[at]);
  const size_t bytes = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (bytes == 1) {
    return {lead, 1};
  }
  if (bytes == 0 || lead > 0xF4 || bytes > text.size() - at) {
    return {};
  }
  char32_t code = lead & (0x7FU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const char next = text[at + i];
    if (!ContinuesCharacter(next)) {
      return {};
    }
    code = (code << 6U) | (static_cast<unsigned char>(next) & 0x3FU);
  }
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < kSmallest[bytes] || code > 0x10FFFF || surrogate ? Utf8Character{}
                                                                 : Utf8Character{code, bytes};
}

void AppendCharacter(char32_t code, std::string* text) {
  const auto tail = [code](unsigned shift) {
    return static_cast<char>(0x80U | (code >> shift & 0x3FU));
  };
  if (code < 0x80) {
    *text += static_cast<char>(code);
  } else if (code < 0x800) {
    *text += {static_cast<char>(0xC0U | code >> 6U), tail(0)};
  } else if (code < 0x10000) {
    *text += {static_cast<char>(0xE0U | code >> 12U), tail(6), tail(0)};
  } else {
    *text += {static_cast<char>(0xF0U | code >> 18U), tail(12), tail(6), tail(0)};
  }
}

bool IsUtf8(std::string_view text) {
  unsigned char bits = 0;  // of all bytes, which are looked at together
  for (const char byte : text) {
    bits |= static_cast<unsigned char>(byte);
  }
  if (bits < 0x80) {
    return true;
  }
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = CharacterAt(text, at).bytes;
    if (bytes == 0) {
      return false;
    }
    at += bytes;
  }
  return true;
}

std::string_view CutToBytes(std::string_view text, size_t bytes) {
  if (bytes >= text.size()) {
    return text;
  }
  while (bytes > 0 && ContinuesCharacter(text[bytes])) {
    --bytes;
  }
  return text.substr(0, bytes);
}

std::string ValidUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = CharacterAt(text, at).bytes;
    valid += bytes == 0 ? "\xEF\xBF\xBD" : text.substr(at, bytes);
    at += bytes == 0 ? 1 : bytes;
  }
  return valid;
}

std::string Printable(std::string_view text) {
  return WithoutControls(text, false);
}

std::string PrintableLines(std::string_view text) {
  return WithoutControls(text, true);
}

}  // namespace sluice
