#include <fmt/core.h>

#include <cstdint>
#include <optional>

#include "base/base64.h"
#include "base/client_address.h"
#include "catalog/source_url.h"
#include "server/gateway/client_login_internal.h"

namespace sluice::server {
namespace {

// Longest login; PostgreSQL's own limit for a password in a message is lower.
constexpr size_t kMaxBytes = 4'096;

Status NoLogin(std::string message, std::string hint) {
  return Status(Code::kPermissionDenied, std::move(message))
      .SqlState("28000")
      .Hint(std::move(hint));
}

bool IsLocal(const std::string& peer) {
  const std::string address = AddressOf(peer);
  return peer.rfind("unix", 0) == 0 || address.rfind("127.", 0) == 0 || address == "::1";
}

Status CheckPrivate(const std::string& peer, bool encrypted) {
  return encrypted || IsLocal(peer)
             ? OkStatus()
             : NoLogin("a password was sent in the clear from another machine, and is not taken",
                       "start the gateway with --tls-cert and --tls-key, and the client with "
                       "--gateway-ca; and change the password");
}

}  // namespace

// "ipv4:10.0.0.1:5000" -> "10.0.0.1",
// "ipv6:%5B::1%5D:5000" -> "::1", "unix:..." -> "[local]".
std::string AddressOf(const std::string& peer) {
  if (peer.rfind("ipv", 0) != 0) {
    return "[local]";
  }
  const size_t begin = peer.find(':') + 1;
  std::string address = peer.substr(begin, peer.rfind(':') - begin);
  for (const std::string_view bracket : {"%5B", "%5D", "[", "]"}) {
    if (const size_t at = address.find(bracket); at != std::string::npos) {
      address.erase(at, bracket.size());
    }
  }
  return PlainAddress(address);
}

std::string BasicAuthorization(const std::string& role, const std::string& password) {
  return "Basic " + EncodeBase64(role + ":" + password);
}

Result<Login> ReadLogin(std::string_view authorization, const std::string& peer, bool encrypted) {
  Login login;
  login.address = AddressOf(peer);
  if (authorization.empty()) {
    return login;
  }
  RETURN_IF_ERROR(CheckPrivate(peer, encrypted));
  constexpr std::string_view kBasic = "Basic ";
  const bool basic = authorization.size() <= kMaxBytes && authorization.starts_with(kBasic);
  const std::optional<std::string> decoded =
      basic ? DecodeBase64(authorization.substr(kBasic.size())) : std::nullopt;
  const size_t colon = decoded ? decoded->find(':') : std::string::npos;
  if (colon == std::string::npos || decoded->find('\0') != std::string::npos) {
    return NoLogin("the call's authorization is no user and password",
                   "the metadata is to be authorization: Basic base64(user:password)");
  }
  login.role = decoded->substr(0, colon);
  login.password = decoded->substr(colon + 1);
  return login;
}

Result<Login> ReadSqlflowLogin(const std::string& data_source, const std::string& served,
                               const std::string& peer, bool encrypted) {
  const Result<catalog::SourceUrl> parsed = catalog::ParseSourceUrl(data_source);
  const bool postgres = parsed.ok() && parsed->kind == catalog::SourceUrl::Kind::kPostgres;
  if (!postgres || catalog::WithRole(parsed->text, "u") != catalog::WithRole(served, "u")) {
    // Do not repeat what the client sent: it may hold a password. Do not name the served source
    // either: this client has not logged in.
    return InvalidArgument(
               "create DB failed: this gateway serves another database than the client's")
        .Hint(
            "the client's data source ($SQLFLOW_DATASOURCE) is to be the gateway's, with your user "
            "and password in it");
  }
  RETURN_IF_ERROR(CheckPrivate(peer, encrypted));
  return Login{catalog::RoleIn(parsed->text), parsed->password, AddressOf(peer)};
}

}  // namespace sluice::server
