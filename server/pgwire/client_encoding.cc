#include "server/pgwire/client_encoding.h"

#include <fmt/core.h>
#include <iconv.h>

#include <array>
#include <cstdint>
#include <utility>

#include "server/pgwire/messages.h"

namespace sluice::server::pgwire {
namespace {

constexpr std::array<std::pair<std::string_view, const char*>, 27> kEncodings = {{
    {"LATIN1", "ISO-8859-1"},     {"LATIN2", "ISO-8859-2"},     {"LATIN3", "ISO-8859-3"},
    {"LATIN4", "ISO-8859-4"},     {"LATIN5", "ISO-8859-9"},     {"LATIN6", "ISO-8859-10"},
    {"LATIN7", "ISO-8859-13"},    {"LATIN8", "ISO-8859-14"},    {"LATIN9", "ISO-8859-15"},
    {"LATIN10", "ISO-8859-16"},   {"ISO_8859_5", "ISO-8859-5"}, {"ISO_8859_6", "ISO-8859-6"},
    {"ISO_8859_7", "ISO-8859-7"}, {"ISO_8859_8", "ISO-8859-8"}, {"KOI8R", "KOI8-R"},
    {"KOI8U", "KOI8-U"},          {"WIN866", "CP866"},          {"WIN874", "CP874"},
    {"WIN1250", "CP1250"},        {"WIN1251", "CP1251"},        {"WIN1252", "CP1252"},
    {"WIN1253", "CP1253"},        {"WIN1254", "CP1254"},        {"WIN1255", "CP1255"},
    {"WIN1256", "CP1256"},        {"WIN1257", "CP1257"},        {"WIN1258", "CP1258"},
}};

constexpr const char* kUtf8 = "UTF-8";

bool IsAscii(std::string_view text) {
  uint8_t all = 0;
  for (const char byte : text) {
    all |= static_cast<uint8_t>(byte);
  }
  return all < 0x80;
}

// Returns where the text cannot be converted further; npos: all of it is in `out`.
size_t Convert(const char* from, const char* to, std::string_view text, std::string* out) {
  const iconv_t converter = iconv_open(to, from);
  if (converter == iconv_t(-1)) {  // NOLINT: what iconv_open says
    return 0;
  }
  constexpr size_t kLongest = 4;  // bytes of a character
  out->resize(text.size() * kLongest);
  std::string input(text);  // iconv's parameter is not const
  char* in_at = input.data();
  size_t in_left = input.size();
  char* out_at = out->data();
  size_t out_left = out->size();
  const bool converted =
      iconv(converter, &in_at, &in_left, &out_at, &out_left) == 0 &&
      iconv(converter, nullptr, nullptr, &out_at, &out_left) == 0;  // WIN1255 holds one back
  iconv_close(converter);
  out->resize(out->size() - out_left);
  return converted ? std::string_view::npos : text.size() - in_left;
}

size_t CharacterBytes(std::string_view utf8, size_t at) {
  size_t end = at + 1;
  while (end < utf8.size() && (static_cast<uint8_t>(utf8[end]) & 0xC0U) == 0x80U) {
    ++end;
  }
  return end - at;
}

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) {
    hex += fmt::format("{}0x{:02x}", hex.empty() ? "" : " ", static_cast<uint8_t>(byte));
  }
  return hex;
}

}  // namespace

std::optional<ClientEncoding> ClientEncoding::Find(std::string_view name) {
  for (const auto& [postgres, iconv] : kEncodings) {
    if (postgres == name) {
      return ClientEncoding(std::string(name), iconv);
    }
  }
  return std::nullopt;
}

Result<std::string> ClientEncoding::ToUtf8(std::string_view text) const {
  std::string utf8;
  if (IsAscii(text)) {
    return std::string(text);
  }
  const size_t wrong = Convert(iconv_, kUtf8, text, &utf8);
  if (wrong == std::string_view::npos) {
    return utf8;
  }
  return InvalidArgument(fmt::format("invalid byte sequence for encoding \"{}\": {}", name_,
                                     Hex(text.substr(wrong, 1))))
      .SqlState("22021");
}

Result<std::string> ClientEncoding::FromUtf8(std::string_view text) const {
  std::string encoded;
  if (IsAscii(text)) {
    return std::string(text);
  }
  const size_t wrong = Convert(kUtf8, iconv_, text, &encoded);
  if (wrong == std::string_view::npos) {
    return encoded;
  }
  return InvalidArgument(fmt::format("character with byte sequence {} in encoding \"UTF8\" has no "
                                     "equivalent in encoding \"{}\"",
                                     Hex(text.substr(wrong, CharacterBytes(text, wrong))), name_))
      .SqlState("22P05");
}

std::string ClientEncoding::FromUtf8Lossy(std::string_view text) const {
  std::string whole;
  while (!text.empty()) {
    std::string part;
    const size_t wrong = Convert(kUtf8, iconv_, text, &part);
    whole += part;
    if (wrong == std::string_view::npos) {
      break;
    }
    whole += '?';
    text.remove_prefix(wrong + CharacterBytes(text, wrong));
  }
  return whole;
}

std::string ClientEncoding::Encoded(std::string_view messages) const {
  if (IsAscii(messages)) {
    return std::string(messages);
  }
  std::string encoded;
  while (messages.size() >= kHeaderBytes) {
    const char type = messages.front();
    const size_t size = 1 + LoadBigEndian<uint32_t>(messages.substr(1));
    const std::string_view message = messages.substr(0, size);
    messages.remove_prefix(message.size());
    if ((type != 'E' && type != 'N' && type != 'T' && type != 'A') || IsAscii(message)) {
      encoded += message;
      continue;
    }
    std::string body;
    BigEndianReader reader(message.substr(kHeaderBytes));
    const auto text = [&] {
      body += FromUtf8Lossy(reader.String());
      body += '\0';
    };
    if (type == 'T') {
      constexpr size_t kBehindName = 18;
      body += reader.Bytes(sizeof(uint16_t));
      while (reader.ok() && !reader.at_end()) {
        text();
        body += reader.Bytes(kBehindName);
      }
    } else if (type == 'A') {
      body += reader.Bytes(sizeof(uint32_t));
      text();
      text();
    } else {
      for (char code = reader.Take<char>(); code != '\0'; code = reader.Take<char>()) {
        body += code;
        text();
      }
      body += '\0';
    }
    AppendMessage(encoded, type, body);
  }
  return encoded;
}

}  // namespace sluice::server::pgwire
