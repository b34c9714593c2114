#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::server::pgwire {

// A client's encoding (client_encoding) other than UTF-8, of one byte per character, with ASCII in
// its lower half; internally all text is UTF-8. Converts as the C library does. Thread-safe.
class ClientEncoding {
 public:
  // `name`: PostgreSQL's. nullopt: not such an encoding.
  static std::optional<ClientEncoding> Find(std::string_view name);

  const std::string& name() const { return name_; }
  // 22021: the text is not valid in this encoding.
  Result<std::string> ToUtf8(std::string_view text) const;
  // 22P05: the encoding lacks a character. `text`: UTF-8.
  Result<std::string> FromUtf8(std::string_view text) const;
  // '?' replaces characters that the encoding lacks.
  std::string FromUtf8Lossy(std::string_view text) const;
  // Encodes whole messages to a client: column names, errors, notices and notifications. Rows
  // (DataRow) are left unchanged.
  std::string Encoded(std::string_view messages) const;

 private:
  ClientEncoding(std::string name, const char* to_iconv)
      : name_(std::move(name)), iconv_(to_iconv) {}

  std::string name_;
  const char* iconv_;  // the C library's name
};

}  // namespace sluice::server::pgwire
