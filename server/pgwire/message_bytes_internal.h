#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/pgwire/messages.h"

// Helpers to write messages.
namespace sluice::server::pgwire {

inline void AppendUint16(std::string& out, uint16_t number) {
  out.push_back(static_cast<char>(number >> 8U));
  out.push_back(static_cast<char>(number & 0xffU));
}

inline void AppendString(std::string& out, std::string_view text) {
  out.append(text.substr(0, text.find('\0')));
  out.push_back('\0');
}

// Writes a message's length when destroyed.
class OpenMessage {
 public:
  OpenMessage(std::string& out, char type) : out_(out) {
    out_.push_back(type);
    begin_ = out_.size();
    out_.append(kLengthBytes, '\0');
  }
  ~OpenMessage() { PutUint32(out_, begin_, static_cast<uint32_t>(out_.size() - begin_)); }
  OpenMessage(const OpenMessage&) = delete;
  OpenMessage& operator=(const OpenMessage&) = delete;

 private:
  std::string& out_;
  size_t begin_;
};

}  // namespace sluice::server::pgwire
