#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "server/statements/source_pool.h"

// How a client says over gRPC who it is: the metadata `authorization: Basic base64(user:password)`
// (RFC 7617), over TLS, on the loopback, or through a Unix socket.
namespace sluice::server {

inline constexpr char kAuthorization[] = "authorization";

std::string BasicAuthorization(const std::string& role, const std::string& password);

// `authorization`: what was sent, "" when nothing was. `peer`: as gRPC spells who calls.
// 28000: what was sent is no login, or came in the clear from another machine.
Result<Login> ReadLogin(std::string_view authorization, const std::string& peer, bool encrypted);

// The login in the data source that SQLFlow's clients send, which names the database `served`.
// 28000: it came in the clear from another machine.
Result<Login> ReadSqlflowLogin(const std::string& data_source, const std::string& served,
                               const std::string& peer, bool encrypted);

}  // namespace sluice::server
