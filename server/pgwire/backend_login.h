#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "server/pgwire/messages.h"
#include "server/pgwire/scram.h"

namespace sluice::server::pgwire {

// A user's credentials: the password, or the keys from a SCRAM authentication.
struct BackendSecret {
  std::string password;
  std::optional<ScramKeys> keys;  // in place of the password
};

// Logs in to a back end as the user: from the start-up message to the first ReadyForQuery. Answers
// every request that a password can answer: SCRAM-SHA-256, MD5, the clear password (LDAP, PAM),
// none. With keys it answers SCRAM-SHA-256 only, and a server that does not ask is refused. One
// that has asked for SCRAM has to prove that it knows the password, too. A login that is named like
// a schema of Sluice is also asked for its search_path (catalog/sql/search_path.h). Pure; belongs
// to one thread.
class BackendLogin {
 public:
  enum class State {
    kUnderWay,
    kProving,  // Prove() has the answer
    kReady,
    kRefused,  // in the server's words
    kMisled,  // "$user" in its search_path is a schema of Sluice: log in again with other_startup()
  };

  // `startup`: as the client sent it. `private_line`: the connection is private, so that the clear
  // password may be sent. `nonce`: random, printable ASCII without commas.
  BackendLogin(StartupMessage startup, BackendSecret secret, bool private_line, std::string nonce);
  ~BackendLogin();

  // The first bytes to send.
  std::string Begin() const;
  // The hash of the server's certificate (TlsServerEndPoint), if the connection has TLS. Call
  // before FromServer.
  void BindTo(std::string channel) { channel_binding_ = std::move(channel); }
  // Takes bytes from the server; returns the answer to them. The bytes end with ReadyForQuery.
  Result<std::string> FromServer(std::string_view bytes);
  // kProving: the answer to the server's challenge, as SCRAM's keys make it. They are derived from
  // the password by as many rounds as the server says, which may take a second: another thread may
  // call it, while nothing else here is called.
  Result<std::string> Prove();

  State state() const { return state_; }
  // Whether the server asked for a proof that the user knows the password.
  bool asked() const { return asked_; }
  // kReady: the keys that the password has at this server; null: it asked for no SCRAM.
  const ScramKeys* keys() const { return scram_ == nullptr ? nullptr : &scram_->keys(); }
  // kMisled: what to log in again with.
  StartupMessage other_startup() const;
  // kRefused: the server's whole ErrorResponse.
  const std::string& refusal() const { return refusal_; }
  // kReady: the server's parameters and notices, as messages for the client.
  const std::string& greeting() const { return greeting_; }
  const std::map<std::string, std::string>& parameters() const { return parameters_; }
  uint32_t process() const { return process_; }
  uint32_t key() const { return key_; }

 private:
  Result<std::string> Take(char type, std::string_view body, std::string_view whole);
  Result<std::string> TakePath(char type, std::string_view body);
  Result<std::string> Authenticate(std::string_view body);
  Status LetIn();
  Result<std::string> BeginScram(BigEndianReader& reader);

  const StartupMessage startup_;
  const BackendSecret secret_;
  const bool private_line_;
  std::optional<std::string> channel_binding_;
  const std::string nonce_;
  std::unique_ptr<ScramClient> scram_;
  std::string challenge_;
  State state_ = State::kUnderWay;
  bool asks_path_ = false;                 // logged in, and waits for its search_path
  std::optional<std::string> other_path_;  // to be used instead
  bool asked_ = false;
  bool proved_ = false;  // the server has, with SCRAM
  bool let_in_ = false;
  std::string held_;
  std::string refusal_;
  std::string greeting_;
  std::map<std::string, std::string> parameters_;
  uint32_t process_ = 0;
  uint32_t key_ = 0;
};

}  // namespace sluice::server::pgwire
