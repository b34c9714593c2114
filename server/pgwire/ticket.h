#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "server/pgwire/scram.h"

namespace sluice::server::pgwire {

// The user and database that a ticket is good for.
struct TicketLogin {
  std::string user;
  std::string database;
  ScramKeys keys;
};

// Tickets replace passwords that the gateway never sees: a process that runs a user's statement
// shows one at the gateway's desk, which logs in for it. A ticket is the login itself, encrypted
// (AES-256-GCM) with a key that only the gateway and its desk have, so nothing needs to be stored
// for it; it is good for one user and database, as long as the key exists. Thread-safe.
class TicketOffice {
 public:
  static constexpr size_t kKeyBytes = 32;

  TicketOffice();  // creates its key
  explicit TicketOffice(std::string key) : key_(std::move(key)) {}
  ~TicketOffice();
  TicketOffice(const TicketOffice&) = delete;
  TicketOffice& operator=(const TicketOffice&) = delete;

  std::string Issue(const TicketLogin& login) const;  // as base64
  const std::string& key() const { return key_; }
  // 28000: not a ticket of this gateway.
  Result<TicketLogin> Read(std::string_view ticket) const;

 private:
  std::string key_;
};

}  // namespace sluice::server::pgwire
