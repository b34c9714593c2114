#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::server::pgwire {

// The PostgreSQL server behind the door, from the gateway's source.
struct Upstream {
  std::string host;     // a name, an address, or the folder of a Unix socket; what TLS verifies
  std::string address;  // libpq's hostaddr: where `host` is, instead of what its name resolves to
  std::string port = "5432";
  std::string user;                                  // the gateway's own login
  std::string database;                              // its own database
  std::string tls_mode;                              // libpq's sslmode; "" when not given
  std::string tls_root;                              // libpq's sslrootcert
  std::string tls_revoked, tls_revoked_folder;       // sslcrl, sslcrldir
  std::string binds_channel;                         // channel_binding
  std::string least_tls = "TLSv1.2", most_tls = {};  // ssl_min_protocol_version, ..max..

  // Where to connect.
  const std::string& place() const { return address.empty() ? host : address; }
  bool local_socket() const { return !place().empty() && place().front() == '/'; }
  // Of the Unix socket in the folder `host`.
  std::string SocketPath() const { return host + "/.s.PGSQL." + port; }
};

// Reads `url` as libpq does, with its environment variables and defaults, but not the files of
// ~/.postgresql. 0A000: it demands something of the connection that the door does not look at.
Result<Upstream> UpstreamOf(const std::string& url);

// Whether only this machine can be at that address: loopback, or a Unix socket.
bool IsLoopback(std::string_view host);

}  // namespace sluice::server::pgwire
