#pragma once

#include <string>
#include <string_view>

// A secret in the place of a password: the keys that SCRAM-SHA-256 derives from it (RFC 5802), with
// which a process logs in to that server as that user, and from which nobody learns the password.
// libpq takes passwords only; so PostgresConnection logs in through a desk of its own process
// (server/pgwire/key_desk), which has to be there.
namespace sluice::catalog {

// "...:base64 of ClientKey and ServerKey". With a blank in it, it is somebody's password, who would
// name the desk another server behind the blank.
inline constexpr std::string_view kKeySecretPrefix = "sluice-scram-keys:";
inline bool IsKeySecret(std::string_view secret) {
  return secret.starts_with(kKeySecretPrefix) && secret.find(' ') == std::string_view::npos;
}

// Where this process's desk listens, as libpq's host and port: an abstract Unix socket.
std::string KeyDeskHost();
inline constexpr char kKeyDeskPort[] = "5432";  // only part of the name

// What a connection says to the desk as its password.
struct KeyDeskRequest {
  std::string secret;  // with its prefix
  std::string url;     // of the server, without a password
};
std::string KeyDeskToken(const KeyDeskRequest& request);
KeyDeskRequest ReadKeyDeskToken(std::string_view token);

}  // namespace sluice::catalog
