#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "server/pgwire/scram.h"

namespace sluice::server::pgwire {

// Who may log in by a ticket, and as whom.
struct TicketLogin {
  std::string user;
  std::string database;
  ScramKeys keys;
};

// Tickets in place of a password that nobody has seen: whoever runs a user's statement connects to
// the gateway's desk with one, which logs in for them. A ticket is the login itself, encrypted with
// a key that only the gateway and its desk have (AES-256-GCM), so nothing has to be remembered of
// it; it is good for one user and database, and as long as the key. Thread-safe.
class TicketOffice {
 public:
  static constexpr size_t kKeyBytes = 32;

  TicketOffice();  // makes its key
  explicit TicketOffice(std::string key) : key_(std::move(key)) {}
  ~TicketOffice();
  TicketOffice(const TicketOffice&) = delete;
  TicketOffice& operator=(const TicketOffice&) = delete;

  std::string Issue(const TicketLogin& login) const;  // as base64
  const std::string& key() const { return key_; }
  // 28000: it is none of this gateway's.
  Result<TicketLogin> Read(std::string_view ticket) const;

 private:
  std::string key_;
};

}  // namespace sluice::server::pgwire
