#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "server/pgwire/password.h"
#include "server/pgwire/scram.h"
#include "tests/fuzz/target.h"

// Arbitrary messages from the other end of a SCRAM authentication: without the password no client
// is let in and no server believed; a malformed message gets no answer.
namespace sluice::server::pgwire {
namespace {

// RFC 7677's password and salt, with fewer iterations.
const ScramKeys& Keys() {
  static const ScramKeys keys = DeriveScramKeys("pencil", "salt", 1);
  return keys;
}

std::string_view TakeLine(std::string_view& input) {
  const size_t end = std::min(input.find('\n'), input.size());
  const std::string_view line = input.substr(0, end);
  input.remove_prefix(std::min(end + 1, input.size()));
  return line;
}

void CheckServer(std::string_view mechanism, std::string_view first, std::string_view final,
                 bool tls) {
  ScramVerifier verifier = MockScramVerifier("secret", "role", 4'096);
  ScramServer server(
      verifier, tls ? std::optional<std::string>(std::string(32, 'h')) : std::nullopt, "nonce");
  const auto asked = server.First(mechanism, first);
  if (asked.ok() && (first.size() > kMostScramBytes || asked->size() > 2 * kMostScramBytes)) {
    Broken("a long message was answered");
  }
  if (server.Final(final).ok()) {
    Broken("somebody without a password was let in");
  }
  if (!server.client_key().empty()) {
    Broken("a key was taken from a wrong proof");
  }
}

void CheckClient(std::string_view first, std::string_view final, bool tls) {
  ScramClient client(Keys(), tls ? std::optional<std::string>(std::string(32, 'h')) : std::nullopt,
                     "nonce");
  const auto begin = client.First({std::string(tls ? kScramSha256Plus : kScramSha256)});
  const auto proof = client.Final(first);
  if (proof.ok() && !first.starts_with("r=nonce")) {
    Broken("another's nonce was answered");
  }
  if (client.Verify(final).ok()) {
    Broken("a server without the password was believed");
  }
}

void CheckVerifier(std::string_view text) {
  const auto verifier = ParseScramVerifier(text);
  if (verifier.ok() && (verifier->iterations < 1 || verifier->stored_key.size() != 32 ||
                        verifier->server_key.size() != 32 || verifier->salt.empty())) {
    Broken("half a verifier");
  }
}

void CheckPassword(std::string_view text) {
  const auto prepared = PreparePassword(text);
  if (prepared.ok() && *prepared != text && PreparePassword(*prepared).value() != *prepared) {
    Broken("a prepared password is not its own preparation");
  }
}

}  // namespace
}  // namespace sluice::server::pgwire

FUZZ_TARGET(scram) {
  using namespace sluice::server::pgwire;  // NOLINT
  std::string_view input(reinterpret_cast<const char*>(data), size);
  CheckVerifier(input);
  CheckPassword(input);
  const std::string_view mechanism = TakeLine(input);
  const std::string_view first = TakeLine(input);
  for (const bool tls : {false, true}) {
    CheckServer(mechanism, first, input, tls);
    CheckClient(first, input, tls);
  }
  return 0;
}
