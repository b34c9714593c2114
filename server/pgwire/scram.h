#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/pgwire/scram_verifier.h"

// SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, RFC 7677; channel binding tls-server-end-point,
// RFC 5929) as PostgreSQL implements them: both ends, bytes in and bytes out. The caller supplies
// nonces (18 random bytes in base64, like the server's own). Secrets are compared in constant time,
// and overwritten when their owner is destroyed.
namespace sluice::server::pgwire {

inline constexpr std::string_view kScramSha256Plus = "SCRAM-SHA-256-PLUS";

// The server's end of one authentication. Not thread-safe.
class ScramServer {
 public:
  // `channel_binding`: the hash of our certificate (TlsServerEndPoint), if the client's connection
  // has TLS. `nonce`: printable ASCII without commas.
  ScramServer(ScramVerifier verifier, std::optional<std::string> channel_binding,
              std::string nonce);
  ~ScramServer();
  ScramServer(const ScramServer&) = delete;
  ScramServer& operator=(const ScramServer&) = delete;

  // The mechanisms to offer, the better one first.
  std::vector<std::string_view> mechanisms() const;
  // Takes the client's mechanism and first message; returns our first message. 08P01: malformed;
  // 28000: an attacker made the client believe that we cannot bind to the channel.
  Result<std::string> First(std::string_view mechanism, std::string_view message);
  // Takes the client's last message; returns ours, which proves who we are. 28P01: the password is
  // wrong; 28000: the client is bound to a different channel.
  Result<std::string> Final(std::string_view message);
  // After Final: the key that replaces the password in logins elsewhere with the same verifier.
  const std::string& client_key() const { return client_key_; }

 private:
  enum class State : int { kBegins, kAsked, kOver };
  Result<std::string> ReadFirst(std::string_view mechanism, std::string_view message);
  Status ReadBinding(char flag, std::string_view mechanism, std::string_view binding_type) const;

  ScramVerifier verifier_;
  const std::optional<std::string> channel_binding_;
  std::string nonce_;  // the client's followed by ours, after First
  State state_ = State::kBegins;
  std::string gs2_header_;
  std::string client_first_bare_;
  std::string server_first_;
  std::string client_key_;
};

// The client's end of one authentication. Not thread-safe.
class ScramClient {
 public:
  // Logs in with a password, or with only the keys of the role's verifier: a ClientKey that
  // ScramServer has found, and the ServerKey that the server has to prove.
  ScramClient(std::string password, std::optional<std::string> channel_binding, std::string nonce);
  ScramClient(ScramKeys keys, std::optional<std::string> channel_binding, std::string nonce);
  ~ScramClient();
  ScramClient(const ScramClient&) = delete;
  ScramClient& operator=(const ScramClient&) = delete;

  struct Begin {
    std::string mechanism;
    std::string message;
  };
  // Chooses the best of the server's mechanisms, with channel binding if both sides have TLS.
  // 0A000: SCRAM-SHA-256 is not among them.
  Result<Begin> First(const std::vector<std::string>& offered);
  // Takes the server's first message; returns our last one.
  Result<std::string> Final(std::string_view server_first);
  // Checks the server's last message. 28000: the server does not know the password either.
  Status Verify(std::string_view server_final) const;
  // After Final: the keys of the password for this server's salt.
  const ScramKeys& keys() const { return keys_; }

 private:
  std::string password_;
  ScramKeys keys_;  // the password's keys, after Final
  const std::optional<std::string> channel_binding_;
  const std::string nonce_;
  std::string gs2_header_;  // with the channel's binding
  std::string client_first_bare_;
  std::string auth_message_;  // "" before Final
};

}  // namespace sluice::server::pgwire
