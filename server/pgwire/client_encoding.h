#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::server::pgwire {

// An encoding of a client's (client_encoding) other than UTF-8, of one byte a character and with
// ASCII in its lower half; what we say and understand is UTF-8. Converts as the C library does.
// Thread-safe.
class ClientEncoding {
 public:
  // `name`: PostgreSQL's. nullopt: it is none of those.
  static std::optional<ClientEncoding> Find(std::string_view name);

  const std::string& name() const { return name_; }
  // 22021: it is no text of this encoding.
  Result<std::string> ToUtf8(std::string_view text) const;
  // 22P05: a character that the encoding does not have. `text`: UTF-8.
  Result<std::string> FromUtf8(std::string_view text) const;
  // '?' in the place of such characters.
  std::string FromUtf8Lossy(std::string_view text) const;
  // Whole messages of ours to a client: names of columns, errors, notices and notifications. Rows
  // (DataRow) are as they were.
  std::string Encoded(std::string_view messages) const;

 private:
  ClientEncoding(std::string name, const char* to_iconv)
      : name_(std::move(name)), iconv_(to_iconv) {}

  std::string name_;
  const char* iconv_;  // the C library's name
};

}  // namespace sluice::server::pgwire
