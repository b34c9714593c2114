#include "server/pgwire/password.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "server/pgwire/digests_internal.h"

namespace sluice::server::pgwire {
namespace {

struct CharRange {
  uint32_t first;
  uint32_t last;
};

// RFC 3454, C.1.2, as the server has it: spaces that are mapped to ' '.
constexpr CharRange kSpaces[] = {{0x00A0, 0x00A0}, {0x1680, 0x1680}, {0x2000, 0x200B},
                                 {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
// RFC 3454, B.1: characters that are mapped to nothing.
constexpr CharRange kNothing[] = {{0x00AD, 0x00AD}, {0x034F, 0x034F}, {0x1806, 0x1806},
                                  {0x180B, 0x180D}, {0x200C, 0x200D}, {0x2060, 0x2060},
                                  {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF}};
// Characters that stay unchanged wherever they stand, and are read from left to right.
constexpr CharRange kLeftToRight[] = {
    {0x0020, 0x007E}, {0x00A1, 0x00A7}, {0x00A9, 0x00A9}, {0x00AB, 0x00AC}, {0x00AE, 0x00AE},
    {0x00B0, 0x00B1}, {0x00B6, 0x00B7}, {0x00BB, 0x00BB}, {0x00BF, 0x0131}, {0x0134, 0x013E},
    {0x0141, 0x0148}, {0x014A, 0x017E}, {0x0180, 0x01C3}, {0x01CD, 0x01F0}, {0x01F4, 0x021F},
    {0x0222, 0x0233}, {0x0250, 0x02AD}, {0x0386, 0x0386}, {0x0388, 0x038A}, {0x038C, 0x038C},
    {0x038E, 0x03A1}, {0x03A3, 0x03CE}, {0x0400, 0x0482}, {0x048A, 0x04CE}, {0x04D0, 0x04F5},
    {0x0531, 0x0556}, {0x0561, 0x0586}, {0x10D0, 0x10F8}, {0x1E00, 0x1E99}, {0x1EA0, 0x1EF9},
    {0x2010, 0x2010}, {0x2012, 0x2016}, {0x2018, 0x2023}, {0x2030, 0x2032}, {0x20A0, 0x20A7},
    {0x20A9, 0x20AF}, {0x3001, 0x301D}, {0x3041, 0x3096}, {0x30A1, 0x30FA}, {0x30FC, 0x30FC},
    {0x4E00, 0x9FA5}, {0xAC00, 0xD7A3}};
// The same for right to left; a text that mixes directions may be forbidden.
constexpr CharRange kRightToLeft[] = {{0x05D0, 0x05EA}, {0x0621, 0x063A}, {0x0641, 0x064A}};
// Not assigned in Unicode 3.2: a password with such a character is used unchanged.
constexpr CharRange kEmoji[] = {{0x1F300, 0x1FAFF}};

template <size_t kCount>
bool Among(const CharRange (&ranges)[kCount], uint32_t c) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [c](const CharRange& range) { return c >= range.first && c <= range.last; });
}

std::string Md5Hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const int done = EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_md5(), nullptr);
  SLUICE_CHECK(done == 1, "MD5 is there");
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (size_t i = 0; i < size; ++i) {
    hex += {kDigits[digest[i] >> 4U], kDigits[digest[i] & 0xFU]};
  }
  return hex;
}

}  // namespace

Result<std::string> PreparePassword(std::string_view password) {
  std::string as_it_stands(password);
  if (!IsUtf8(password) ||
      std::none_of(password.begin(), password.end(), [](char c) { return c < 0; })) {
    return as_it_stands;
  }
  std::vector<uint32_t> characters;
  for (size_t at = 0; at < password.size();) {
    const auto [code, bytes] = CharacterAt(password, at);
    characters.push_back(code);
    at += bytes;
  }
  std::string prepared;
  bool right_to_left = false;
  bool forbidden = false;
  for (const uint32_t c : characters) {
    forbidden = forbidden || c < ' ' || (c >= 0x7F && c < 0xA0) || Among(kEmoji, c);
    if (Among(kSpaces, c)) {
      prepared += ' ';
    } else if (!Among(kNothing, c)) {
      AppendCharacter(c, &prepared);
    }
    right_to_left = right_to_left || Among(kRightToLeft, c);
  }
  if (forbidden || prepared.empty()) {
    return as_it_stands;
  }
  const bool known = std::all_of(characters.begin(), characters.end(), [](uint32_t c) {
    return Among(kSpaces, c) || Among(kNothing, c) || Among(kLeftToRight, c) ||
           Among(kRightToLeft, c);
  });
  // If nothing was mapped, it makes no difference whether the password is forbidden.
  if (!known || (right_to_left && prepared != password)) {
    return Unimplemented("the password has characters that this gateway cannot prepare for SCRAM")
        .Detail(
            "SASLprep (RFC 4013) of half-width and superscript forms, ligatures and combining "
            "accents is not built")
        .Hint("choose a password of ASCII characters or of letters with their accents");
  }
  return prepared;
}

std::string Md5Password(std::string_view role, std::string_view password,
                        const std::array<char, 4>& salt) {
  std::string text(password);
  text += role;
  std::string stored = Md5Hex(text);
  Forget(&text);
  stored.append(salt.data(), salt.size());
  return "md5" + Md5Hex(stored);
}

}  // namespace sluice::server::pgwire
