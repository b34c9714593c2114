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
  // The user that its jobs show where no login is required.
  std::string user = {};
  // The login; "": none. A password is sent only over TLS, on the loopback or through a Unix
  // socket.
  std::string role = {};
  std::string password = {};
};

// A session on a running gateway over sluice.v1.Gateway, on one persistent channel; the session's
// settings travel with each script. Belongs to one thread.
class GatewayClient {
 public:
  // Asks the gateway for its version, so that a wrong address or password is reported at once.
  static Result<std::unique_ptr<GatewayClient>> Connect(const GatewayClientOptions& options);
  virtual ~GatewayClient() = default;
  // `stop` also cancels the script on the gateway.
  virtual Status Run(const std::string& script, std::stop_token stop,
                     executor::ResultSink& sink) = 0;
};

}  // namespace sluice::server
