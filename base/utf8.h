#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Texts in UTF-8, which may come from anywhere. Only well-formed characters count as such (Unicode,
// table 3-7): no over-long forms, surrogates or code points beyond U+10FFFF. Pure.
namespace sluice {

struct Utf8Character {
  char32_t code = 0;
  size_t bytes = 0;  // 0: there is none
};
// The character that begins at `at`, which is inside the text.
Utf8Character CharacterAt(std::string_view text, size_t at);

void AppendCharacter(char32_t code, std::string* text);

bool IsUtf8(std::string_view text);

// Whether the byte is one of a character's bytes after its first.
inline bool ContinuesCharacter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

// The beginning of the text, at most so many bytes, which ends between two characters.
std::string_view CutToBytes(std::string_view text, size_t bytes);

// The text with bytes that are not UTF-8 replaced by U+FFFD. No peer can parse a gRPC message whose
// string fields are not UTF-8.
std::string ValidUtf8(std::string_view text);

// One line without anything that moves the cursor, changes colours or turns the writing direction:
// control characters, direction marks and bytes that are not UTF-8 are spelled out.
std::string Printable(std::string_view text);
// The same, but line ends are kept.
std::string PrintableLines(std::string_view text);

}  // namespace sluice
