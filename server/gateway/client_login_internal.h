#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "server/statements/source_pool.h"

// Login over gRPC: the metadata `authorization: Basic base64(user:password)` (RFC 7617), accepted
// over TLS, on the loopback, or through a Unix socket.
namespace sluice::server {

inline constexpr char kAuthorization[] = "authorization";

std::string BasicAuthorization(const std::string& role, const std::string& password);

// The caller's address without the port, as the other doors write it; "[local]": a Unix socket.
// `peer`: as gRPC spells it.
std::string AddressOf(const std::string& peer);

// `authorization`: the client's metadata, "" if there was none. `peer`: the caller, as gRPC spells
// it. 28000: the metadata is not a login, or came unencrypted from another machine.
Result<Login> ReadLogin(std::string_view authorization, const std::string& peer, bool encrypted);

// The login inside the data source that a SQLFlow client sends; the source must name the database
// `served`. 28000: it came unencrypted from another machine.
Result<Login> ReadSqlflowLogin(const std::string& data_source, const std::string& served,
                               const std::string& peer, bool encrypted);

}  // namespace sluice::server
