#include "server/pgwire/scram.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/same_secret.h"
#include "server/pgwire/digests_internal.h"
#include "server/pgwire/password.h"

namespace sluice::server::pgwire {
namespace {

// Limit of iterations, about a second: a server that asks for more would hold up the login.
constexpr int kMostIterations = 1'000'000;
constexpr std::string_view kEndPointBinding = "tls-server-end-point";

Status MalformedScram(std::string detail) {
  return InvalidArgument("malformed SCRAM message").SqlState("08P01").Detail(std::move(detail));
}

Status ScramRefused(std::string message) {
  return Status(Code::kPermissionDenied, std::move(message)).SqlState("28000");
}

Status CheckScramSize(std::string_view message) {
  if (message.empty() || message.size() > kMostScramBytes) {
    return MalformedScram(
        fmt::format("it has {} bytes; 1 to {} are allowed", message.size(), kMostScramBytes));
  }
  if (message.find('\0') != std::string_view::npos) {
    return MalformedScram("there is a zero byte in it");
  }
  return OkStatus();
}

// Takes "<name>=<value>" and the comma after it off the front of a message.
Result<std::string_view> TakeAttribute(std::string_view& message, char name) {
  if (message.size() < 2 || message[0] != name || message[1] != '=') {
    return MalformedScram(fmt::format("attribute '{}' is expected", name));
  }
  message.remove_prefix(2);
  const size_t end = std::min(message.find(','), message.size());
  const std::string_view value = message.substr(0, end);
  message.remove_prefix(std::min(end + 1, message.size()));
  return value;
}

// Skips extensions, which are optional attributes, up to the attribute `until`.
Status SkipExtensions(std::string_view& message, char until) {
  while (!message.empty() && message.front() != until) {
    const char name = message.front();
    if ((name < 'a' || name > 'z') && (name < 'A' || name > 'Z')) {
      return MalformedScram("an attribute begins with a letter");
    }
    ASSIGN_OR_RETURN([[maybe_unused]] const std::string_view value, TakeAttribute(message, name));
  }
  return OkStatus();
}

bool IsNonce(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return c > ' ' && c < 0x7F && c != ','; });
}

std::string Xor(std::string_view a, std::string_view b) {
  std::string result(a);
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<char>(result[i] ^ b[i]);
  }
  return result;
}

// Text from the peer, made safe to print.
std::string ScramPrintable(std::string_view text) {
  std::string printable(text);
  for (char& c : printable) {
    c = c < ' ' || c > '~' ? '?' : c;
  }
  return printable;
}

// The start of a client's messages: whether, and to what, it binds.
std::string Gs2Header(std::string_view flag) {
  return std::string(flag) + ",,";
}

}  // namespace

ScramServer::ScramServer(ScramVerifier verifier, std::optional<std::string> channel_binding,
                         std::string nonce)
    : verifier_(std::move(verifier)),
      channel_binding_(std::move(channel_binding)),
      nonce_(std::move(nonce)) {
  SLUICE_CHECK(IsNonce(nonce_), "a nonce is printable");
}

ScramServer::~ScramServer() {
  for (std::string* secret : {&client_key_, &verifier_.stored_key, &verifier_.server_key}) {
    Forget(secret);
  }
}

std::vector<std::string_view> ScramServer::mechanisms() const {
  if (channel_binding_.has_value()) {
    return {kScramSha256Plus, kScramSha256};
  }
  return {kScramSha256};
}

// The same cases, with the same texts, as in PostgreSQL.
Status ScramServer::ReadBinding(char flag, std::string_view mechanism,
                                std::string_view binding_type) const {
  const bool plus = mechanism == kScramSha256Plus;
  if (flag != 'p' && plus) {
    return MalformedScram(
        "The client selected SCRAM-SHA-256-PLUS, but the SCRAM message does not include channel "
        "binding data.");
  }
  if (flag == 'p' && !plus) {
    return MalformedScram(
        "The client selected SCRAM-SHA-256 without channel binding, but the SCRAM message includes "
        "channel binding data.");
  }
  if (flag == 'p' && binding_type != kEndPointBinding) {
    return MalformedScram(
        fmt::format("unsupported SCRAM channel-binding type \"{}\"", ScramPrintable(binding_type)));
  }
  if (flag == 'y' && channel_binding_.has_value()) {
    return ScramRefused("SCRAM channel binding negotiation error")
        .Detail(
            "The client supports SCRAM channel binding but thinks the server does not.  However, "
            "this server does support channel binding.");
  }
  return OkStatus();
}

Result<std::string> ScramServer::ReadFirst(std::string_view mechanism, std::string_view message) {
  const std::vector<std::string_view> offered = mechanisms();
  if (std::find(offered.begin(), offered.end(), mechanism) == offered.end()) {
    return InvalidArgument("client selected an invalid SASL authentication mechanism")
        .SqlState("08P01");
  }
  RETURN_IF_ERROR(CheckScramSize(message));
  std::string_view rest = message;
  const char flag = rest.front();
  std::string_view binding_type;
  if (flag == 'p') {
    ASSIGN_OR_RETURN(binding_type, TakeAttribute(rest, 'p'));
  } else if (flag == 'n' || flag == 'y') {
    if (rest.size() < 2 || rest[1] != ',') {
      return MalformedScram("a comma is expected behind the channel-binding flag");
    }
    rest.remove_prefix(2);
  } else {
    return MalformedScram("the channel-binding flag is none of n, y and p");
  }
  RETURN_IF_ERROR(ReadBinding(flag, mechanism, binding_type));
  if (rest.starts_with("a=")) {
    return Unimplemented("client uses authorization identity, but it is not supported");
  }
  if (!rest.starts_with(",")) {
    return MalformedScram("a comma is expected in place of an authorization identity");
  }
  rest.remove_prefix(1);
  gs2_header_ = message.substr(0, message.size() - rest.size());
  client_first_bare_ = rest;
  if (rest.starts_with("m=")) {
    return Unimplemented("client requires an unsupported SCRAM extension");
  }
  // The role from the start-up message counts.
  ASSIGN_OR_RETURN([[maybe_unused]] const std::string_view role, TakeAttribute(rest, 'n'));
  ASSIGN_OR_RETURN(const std::string_view nonce, TakeAttribute(rest, 'r'));
  if (!IsNonce(nonce)) {
    return MalformedScram("non-printable characters in SCRAM nonce");
  }
  RETURN_IF_ERROR(SkipExtensions(rest, '\0'));
  nonce_ = std::string(nonce) + nonce_;
  return fmt::format("r={},s={},i={}", nonce_, EncodeBase64(verifier_.salt), verifier_.iterations);
}

Result<std::string> ScramServer::First(std::string_view mechanism, std::string_view message) {
  if (std::exchange(state_, State::kOver) != State::kBegins) {
    return MalformedScram("it comes a second time");
  }
  ASSIGN_OR_RETURN(server_first_, ReadFirst(mechanism, message));
  state_ = State::kAsked;
  return server_first_;
}

Result<std::string> ScramServer::Final(std::string_view message) {
  if (std::exchange(state_, State::kOver) != State::kAsked) {
    return MalformedScram("it comes out of turn");
  }
  RETURN_IF_ERROR(CheckScramSize(message));
  std::string_view rest = message;
  ASSIGN_OR_RETURN(const std::string_view binding, TakeAttribute(rest, 'c'));
  const bool bound = gs2_header_.front() == 'p';
  const std::string expected = EncodeBase64(gs2_header_ + (bound ? *channel_binding_ : ""));
  if (!SameSecret(binding, expected)) {
    return bound ? ScramRefused("SCRAM channel binding check failed")
                 : MalformedScram(
                       "unexpected SCRAM channel-binding attribute in client-final-message");
  }
  ASSIGN_OR_RETURN(const std::string_view nonce, TakeAttribute(rest, 'r'));
  RETURN_IF_ERROR(SkipExtensions(rest, 'p'));
  const size_t proof_begins = message.size() - rest.size();
  ASSIGN_OR_RETURN(const std::string_view proof_text, TakeAttribute(rest, 'p'));
  const Result<std::string> proof = KeyFromBase64(proof_text);
  if (!proof.ok() || !rest.empty() || message.back() == ',') {
    return MalformedScram("it does not end with a proof");
  }
  if (!SameSecret(nonce, nonce_)) {
    return InvalidArgument("invalid SCRAM response")
        .SqlState("08P01")
        .Detail("Nonce does not match.");
  }
  const std::string auth_message =
      fmt::format("{},{},{}", client_first_bare_, server_first_,
                  message.substr(0, proof_begins - 1));  // without the comma before the proof
  std::string key = Xor(*proof, HmacSha256(verifier_.stored_key, auth_message));
  // Do the same work for a role that does not exist.
  const bool right = SameSecret(Sha256Of(key), verifier_.stored_key) && !verifier_.mock;
  if (!right) {
    Forget(&key);
    return Status(Code::kPermissionDenied, "password authentication failed").SqlState("28P01");
  }
  client_key_ = std::move(key);
  return "v=" + EncodeBase64(HmacSha256(verifier_.server_key, auth_message));
}

ScramClient::ScramClient(std::string password, std::optional<std::string> channel_binding,
                         std::string nonce)
    : password_(std::move(password)),
      channel_binding_(std::move(channel_binding)),
      nonce_(std::move(nonce)) {
  SLUICE_CHECK(IsNonce(nonce_), "a nonce is printable");
}

ScramClient::ScramClient(ScramKeys keys, std::optional<std::string> channel_binding,
                         std::string nonce)
    : keys_(std::move(keys)),
      channel_binding_(std::move(channel_binding)),
      nonce_(std::move(nonce)) {
  SLUICE_CHECK(IsNonce(nonce_), "a nonce is printable");
  SLUICE_CHECK(keys_.client_key.size() == kSha256Bytes && keys_.server_key.size() == kSha256Bytes,
               "keys are digests");
}

ScramClient::~ScramClient() {
  for (std::string* secret : {&password_, &keys_.client_key, &keys_.server_key}) {
    Forget(secret);
  }
}

Result<ScramClient::Begin> ScramClient::First(const std::vector<std::string>& offered) {
  const auto offers = [&offered](std::string_view mechanism) {
    return std::find(offered.begin(), offered.end(), mechanism) != offered.end();
  };
  Begin begin;
  if (channel_binding_.has_value() && offers(kScramSha256Plus)) {
    begin.mechanism = kScramSha256Plus;
    gs2_header_ = Gs2Header(fmt::format("p={}", kEndPointBinding));
  } else if (offers(kScramSha256)) {
    begin.mechanism = kScramSha256;
    gs2_header_ = Gs2Header(channel_binding_.has_value() ? "y" : "n");
  } else {
    return Unimplemented("the server offers no SASL mechanism that is known here")
        .Hint("known are SCRAM-SHA-256 and, with TLS, SCRAM-SHA-256-PLUS");
  }
  client_first_bare_ = "n=,r=" + nonce_;  // the server uses the role from the start-up message
  begin.message = gs2_header_ + client_first_bare_;
  if (begin.mechanism == kScramSha256Plus) {
    gs2_header_ += *channel_binding_;
  }
  return begin;
}

Result<std::string> ScramClient::Final(std::string_view server_first) {
  if (client_first_bare_.empty() || !auth_message_.empty()) {
    return MalformedScram("it comes out of turn");
  }
  RETURN_IF_ERROR(CheckScramSize(server_first));
  std::string_view rest = server_first;
  ASSIGN_OR_RETURN(const std::string_view nonce, TakeAttribute(rest, 'r'));
  ASSIGN_OR_RETURN(const std::string_view salt_text, TakeAttribute(rest, 's'));
  ASSIGN_OR_RETURN(const std::string_view iterations_text, TakeAttribute(rest, 'i'));
  if (!rest.empty() || server_first.back() == ',') {
    return MalformedScram("there is something behind the number of iterations");
  }
  if (!IsNonce(nonce) || !nonce.starts_with(nonce_) || nonce.size() == nonce_.size()) {
    return MalformedScram("the nonce does not begin with ours, or ends with it");
  }
  const Result<std::string> salt = FromBase64(salt_text);
  const Result<int> iterations = iterations_text.empty() ? Result<int>(InvalidArgument("none"))
                                                         : ParseScramIterations(iterations_text);
  if (!salt.ok() || salt->empty() || !iterations.ok()) {
    return MalformedScram("salt or iterations are invalid");
  }
  if (keys_.client_key.empty()) {
    if (*iterations > kMostIterations) {
      return Unimplemented(
                 fmt::format("the server wants the password hashed {} times", *iterations))
          .Detail(fmt::format("at most {} are allowed", kMostIterations));
    }
    ASSIGN_OR_RETURN(std::string prepared, PreparePassword(password_));
    keys_ = DeriveScramKeys(prepared, *salt, *iterations);
    Forget(&prepared);
  }
  const std::string without_proof = fmt::format("c={},r={}", EncodeBase64(gs2_header_), nonce);
  auth_message_ = fmt::format("{},{},{}", client_first_bare_, server_first, without_proof);
  const std::string signature = HmacSha256(Sha256Of(keys_.client_key), auth_message_);
  return fmt::format("{},p={}", without_proof, EncodeBase64(Xor(keys_.client_key, signature)));
}

Status ScramClient::Verify(std::string_view server_final) const {
  RETURN_IF_ERROR(CheckScramSize(server_final));
  if (auth_message_.empty()) {
    return MalformedScram("it comes out of turn");
  }
  if (server_final.starts_with("e=")) {
    return ScramRefused(fmt::format("the server ends the authentication: {}",
                                    ScramPrintable(server_final.substr(2))));
  }
  std::string_view rest = server_final;
  ASSIGN_OR_RETURN(const std::string_view signature, TakeAttribute(rest, 'v'));
  if (!rest.empty() || server_final.back() == ',') {
    return MalformedScram("there is something behind the server's signature");
  }
  if (!SameSecret(signature, EncodeBase64(HmacSha256(keys_.server_key, auth_message_)))) {
    return ScramRefused("the server does not prove that it knows the password")
        .Detail("its SCRAM signature is wrong: another server may answer in its place");
  }
  return OkStatus();
}

}  // namespace sluice::server::pgwire
