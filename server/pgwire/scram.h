#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

// SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, RFC 7677; channel binding tls-server-end-point,
// RFC 5929), as PostgreSQL speaks them: both ends, bytes in and bytes out. Nonces come from the
// caller (18 random bytes in base64, as the server's own). Secrets are compared in constant time,
// and overwritten when their owner goes.
namespace sluice::server::pgwire {

inline constexpr std::string_view kScramSha256 = "SCRAM-SHA-256";
inline constexpr std::string_view kScramSha256Plus = "SCRAM-SHA-256-PLUS";
// The server's own limit of a SASL message; a longer one is refused before it is looked at.
inline constexpr size_t kMostScramBytes = 1024;

// What a server keeps of a password.
struct ScramVerifier {
  int iterations = 0;
  std::string salt;
  std::string stored_key;  // SHA-256 of the ClientKey
  std::string server_key;
  bool mock = false;  // of a role that does not exist: no password fits
};

// pg_authid.rolpassword: "SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey". Errors are for the
// gateway's log: a client is shown a mock verifier then, and hears no more than that its password
// is wrong.
Result<ScramVerifier> ParseScramVerifier(std::string_view text);

// Such a text of a password as PreparePassword gives it, with the usual 4,096 iterations.
std::string MakeScramVerifier(std::string_view password, std::string_view salt);

// Whether a password, as its user types it, is the one that the verifier was made of. In the same
// time for a mock one.
bool FitsScramVerifier(const ScramVerifier& verifier, std::string_view password);

// For a role that is not known or has no password: looks the same each time it is asked for.
// `secret`: something of the gateway's that nobody else knows.
ScramVerifier MockScramVerifier(std::string_view secret, std::string_view role);

struct ScramKeys {
  std::string client_key;
  std::string server_key;
};
// Takes some milliseconds for the usual 4,096 iterations. The password as PreparePassword gives it.
ScramKeys DeriveScramKeys(std::string_view password, std::string_view salt, int iterations);

// The server's end of one authentication. Not thread-safe.
class ScramServer {
 public:
  // `channel_binding`: the hash of our certificate (TlsServerEndPoint), where the client's
  // connection has TLS. `nonce`: printable ASCII without commas.
  ScramServer(ScramVerifier verifier, std::optional<std::string> channel_binding,
              std::string nonce);
  ~ScramServer();
  ScramServer(const ScramServer&) = delete;
  ScramServer& operator=(const ScramServer&) = delete;

  // What to offer, the better one first.
  std::vector<std::string_view> mechanisms() const;
  // The client's choice with its first message: our first message. 08P01: malformed; 28000: it
  // was led to believe that we cannot bind to the channel.
  Result<std::string> First(std::string_view mechanism, std::string_view message);
  // The client's last message: ours, which proves who we are. 28P01: the password is wrong; 28000:
  // it is bound to somebody else's channel.
  Result<std::string> Final(std::string_view message);
  // After Final: what logs in elsewhere with the same verifier, in place of the password.
  const std::string& client_key() const { return client_key_; }

 private:
  enum class State : int { kBegins, kAsked, kOver };
  Result<std::string> ReadFirst(std::string_view mechanism, std::string_view message);
  Status ReadBinding(char flag, std::string_view mechanism, std::string_view binding_type) const;

  ScramVerifier verifier_;
  const std::optional<std::string> channel_binding_;
  std::string nonce_;  // the client's and ours, from First on
  State state_ = State::kBegins;
  std::string gs2_header_;
  std::string client_first_bare_;
  std::string server_first_;
  std::string client_key_;
};

// The client's end of one authentication. Not thread-safe.
class ScramClient {
 public:
  // Logs in with a password, or with the keys of the role's verifier alone: a ClientKey that
  // ScramServer has found, and the ServerKey that the other end has to prove.
  ScramClient(std::string password, std::optional<std::string> channel_binding, std::string nonce);
  ScramClient(ScramKeys keys, std::optional<std::string> channel_binding, std::string nonce);
  ~ScramClient();
  ScramClient(const ScramClient&) = delete;
  ScramClient& operator=(const ScramClient&) = delete;

  struct Begin {
    std::string mechanism;
    std::string message;
  };
  // The best of what the server offers, bound to the channel where there is TLS on both sides.
  // 0A000: none of them is SCRAM-SHA-256.
  Result<Begin> First(const std::vector<std::string>& offered);
  // The server's first message: our last one.
  Result<std::string> Final(std::string_view server_first);
  // The server's last message. 28000: it does not know the password either.
  Status Verify(std::string_view server_final) const;

 private:
  std::string password_;
  ScramKeys keys_;  // those of the password from Final on
  const std::optional<std::string> channel_binding_;
  const std::string nonce_;
  std::string gs2_header_;  // with the channel's binding
  std::string client_first_bare_;
  std::string auth_message_;  // "" before Final
};

}  // namespace sluice::server::pgwire
