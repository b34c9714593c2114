#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "base/status.h"

namespace sluice::executor {
class ResultSink;
}

namespace sluice::server {

struct GatewayClientOptions {
  std::string address;  // HOST:PORT
  std::string ca_file;  // PEM; "": no encryption
  // That its jobs show where nobody logs in.
  std::string user = {};
  // The login; "": none. A password is sent over TLS, on the loopback or through a Unix socket
  // only.
  std::string role = {};
  std::string password = {};
};

// A session on a running gateway over sluice.v1.Gateway: one channel, kept; settings of the session
// travel with each script. Belongs to one thread.
class GatewayClient {
 public:
  // Asks the gateway for its version, so that a wrong address and a wrong password are told now.
  static Result<std::unique_ptr<GatewayClient>> Connect(const GatewayClientOptions& options);
  virtual ~GatewayClient() = default;
  // `stop` cancels the script on the gateway as well.
  virtual Status Run(const std::string& script, std::stop_token stop,
                     executor::ResultSink& sink) = 0;
};

}  // namespace sluice::server
