#include "server/pgwire/scram_keys.h"

#include <fmt/core.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "catalog/key_login.h"
#include "catalog/source_url.h"
#include "server/pgwire/backend_connection_internal.h"
#include "server/pgwire/digests_internal.h"
#include "server/pgwire/tls_context_internal.h"
#include "server/pgwire/upstream.h"

namespace sluice::server::pgwire {
namespace {

constexpr std::chrono::seconds kKeysPatience(10);
constexpr size_t kGreetingBytes = size_t{16} << 10;

// "FATAL: password authentication failed ...", of an ErrorResponse.
Status RefusedBy(const std::string& response) {
  BigEndianReader reader(std::string_view(response).substr(kHeaderBytes));
  std::string sqlstate = "28000";
  std::string message = "the server refuses the login";
  while (!reader.at_end() && reader.ok()) {
    const char field = static_cast<char>(reader.Take<uint8_t>());
    if (field == '\0') {
      break;
    }
    const std::string_view text = reader.String();
    if (field == 'C') {
      sqlstate = text;
    } else if (field == 'M') {
      message = text;
    }
  }
  // 28000: it wants something else than a password, such as a client's certificate.
  const Code code = sqlstate == "28000" ? Code::kFailedPrecondition : Code::kPermissionDenied;
  return Status(code, std::move(message)).SqlState(std::move(sqlstate));
}

}  // namespace

Result<std::optional<ScramKeys>> FindScramKeys(const catalog::DatabaseLogin& login) {
  ASSIGN_OR_RETURN(const Upstream upstream, UpstreamOf(login.url));
  ASSIGN_OR_RETURN(const TlsContext tls, ClientTls(upstream));
  StartupMessage startup;
  startup.code = kProtocol3;
  startup.parameters = {
      {"user", upstream.user}, {"database", upstream.database}, {"application_name", "sluice"}};
  std::optional<BackendConnection::Outcome> outcome;
  std::vector<char> buffer(kGreetingBytes);
  boost::asio::io_context context(1);
  const auto connection = std::make_shared<BackendConnection>(context, upstream, tls.get(), buffer);
  connection->Start(std::move(startup), {login.secret, std::nullopt},
                    [&](BackendConnection::Outcome came) {
                      outcome = std::move(came);
                      context.stop();
                    });
  context.run_for(kKeysPatience);
  connection->Close();
  if (!outcome.has_value()) {
    return Unavailable(fmt::format("the server at {} does not let anybody in within {} seconds",
                                   upstream.place(), kKeysPatience.count()))
        .SqlState("08001");
  }
  RETURN_IF_ERROR(outcome->status);
  if (!outcome->refusal.empty()) {
    return RefusedBy(outcome->refusal);
  }
  const ScramKeys* const keys = outcome->login->keys();
  std::optional<ScramKeys> found;
  if (keys != nullptr) {
    found = *keys;
  }
  std::string goodbye;
  AppendMessage(goodbye, 'X', {});
  outcome->channel->Write(goodbye);
  return found;
}

std::string KeySecret(const ScramKeys& keys) {
  return fmt::format("{}{}", catalog::kKeySecretPrefix,
                     EncodeBase64(keys.client_key + keys.server_key));
}

Result<ScramKeys> ReadKeySecret(const std::string& secret) {
  const Result<std::string> bytes =
      catalog::IsKeySecret(secret)
          ? FromBase64(std::string_view(secret).substr(catalog::kKeySecretPrefix.size()))
          : Result<std::string>(InvalidArgument("no keys"));
  if (!bytes.ok() || bytes->size() != 2 * kSha256Bytes) {
    return Status(Code::kPermissionDenied, "these are not the keys of a login").SqlState("28000");
  }
  return ScramKeys{bytes->substr(0, kSha256Bytes), bytes->substr(kSha256Bytes)};
}

}  // namespace sluice::server::pgwire
