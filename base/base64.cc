#include "base/base64.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace sluice {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint32_t kDigitBits = 6;
constexpr uint32_t kByteBits = 8;

int DigitOf(char c) {
  if (c >= 'A' && c <= 'Z') {
    return c - 'A';
  }
  if (c >= 'a' && c <= 'z') {
    return c - 'a' + 26;
  }
  if (c >= '0' && c <= '9') {
    return c - '0' + 52;
  }
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool IsBlank(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

}  // namespace

std::string EncodeBase64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  uint32_t held = 0;
  uint32_t bits = 0;
  for (const char byte : bytes) {
    held = (held << kByteBits) | static_cast<unsigned char>(byte);
    bits += kByteBits;
    while (bits >= kDigitBits) {
      bits -= kDigitBits;
      text += kDigits[(held >> bits) & 63U];
    }
  }
  if (bits > 0) {
    text += kDigits[(held << (kDigitBits - bits)) & 63U];
  }
  while (text.size() % 4 != 0) {
    text += '=';
  }
  return text;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t held = 0;
  uint32_t bits = 0;
  size_t digits = 0;
  bool ended = false;
  for (const char c : text) {
    if (IsBlank(c)) {
      continue;
    }
    if (c == '=') {
      ended = true;
      continue;
    }
    const int digit = DigitOf(c);
    if (digit < 0 || ended) {
      return std::nullopt;
    }
    ++digits;
    held = (held << kDigitBits) | static_cast<uint32_t>(digit);
    bits += kDigitBits;
    if (bits >= kByteBits) {
      bits -= kByteBits;
      bytes += static_cast<char>((held >> bits) & 255U);
    }
  }
  return digits % 4 == 1 || bytes.empty() ? std::nullopt : std::optional(std::move(bytes));
}

}  // namespace sluice
