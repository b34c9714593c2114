#include "server/config/terminal.h"

#include <fmt/core.h>

#include <cstdint>

namespace sluice::server {
namespace {

uint32_t Character(std::string_view text, size_t i, size_t length) {
  const auto lead = static_cast<unsigned char>(text[i]);
  uint32_t c = length == 1 ? lead : lead & (0x7FU >> length);
  for (size_t k = 1; k < length; ++k) {
    c = (c << 6U) | (static_cast<unsigned char>(text[i + k]) & 0x3FU);
  }
  return c;
}

// Printed, they do something other than take a place in the line.
bool IsControl(uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0x061C || c == 0x200B || c == 0x200E ||
         c == 0x200F || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x2069) ||
         c == 0xFEFF || (c >= 0xE0000 && c <= 0xE007F);
}

void Append(std::string_view text, bool keep_lines, std::string* shown) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = CharacterLength(text, i);
    const auto byte = static_cast<unsigned char>(text[i]);
    const uint32_t c = length == 0 ? byte : Character(text, i, length);
    if (length == 0 || (IsControl(c) && c < 0x80)) {
      *shown += c == '\n' && keep_lines ? "\n"
                : c == '\n'             ? "\\n"
                : c == '\t'             ? (keep_lines ? "\t" : "\\t")
                                        : fmt::format("\\x{:02x}", byte);
    } else if (IsControl(c)) {
      *shown += fmt::format("\\u{:04x}", c);
    } else {
      *shown += text.substr(i, length);
    }
    i += length == 0 ? 1 : length;
  }
}

}  // namespace

size_t CharacterLength(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char lead = byte(i);
  const size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (length == 0 || lead > 0xF4 || i + length > text.size()) {
    return 0;
  }
  for (size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xC0U) != 0x80U) {
      return 0;
    }
  }
  // Over-long forms, surrogates and code points beyond U+10FFFF.
  if ((lead == 0xE0 && byte(i + 1) < 0xA0) || (lead == 0xED && byte(i + 1) > 0x9F) ||
      (lead == 0xF0 && byte(i + 1) < 0x90) || (lead == 0xF4 && byte(i + 1) > 0x8F)) {
    return 0;
  }
  return length;
}

std::string ValidUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t length = CharacterLength(text, i);
    valid += length == 0 ? "\xEF\xBF\xBD" : text.substr(i, length);
    i += length == 0 ? 1 : length;
  }
  return valid;
}

std::string Printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  Append(text, false, &shown);
  return shown;
}

std::string PrintableLines(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  Append(text, true, &shown);
  return shown;
}

void Say(std::string_view message) {
  const std::string shown = PrintableLines(message);
  std::fwrite(shown.data(), 1, shown.size(), stderr);
  std::fflush(stderr);
}

void SayError(const Status& status, std::string_view script) {
  Say(RenderWithCaret(status, script));
}

}  // namespace sluice::server
