#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "server/config/config.h"

namespace sluice::server {

// A running gateway: sluice.v1.Gateway and proto.SQLFlow on one address, with gRPC's health
// service. One thread per script, at most config.max_statements at a time; further
// scripts are refused with a readable RESOURCE_EXHAUSTED.
class Gateway {
 public:
  static Result<std::unique_ptr<Gateway>> Start(const Config& config);
  virtual ~Gateway() = default;  // calls Shutdown
  // "127.0.0.1:50051", with the actual port where port 0 was asked for.
  virtual const std::string& address() const = 0;
  // The PostgreSQL door's address, in the same form; "": there is none.
  virtual std::string pg_address() const = 0;
  // Fingerprint of the certificate that it made for itself; "": it was given one, or has none.
  virtual const std::string& pg_fingerprint() const = 0;
  // How clients are authenticated.
  virtual Auth auth() const = 0;
  // Cancels the running scripts and waits for them to end. Idempotent.
  virtual void Shutdown() = 0;
};

}  // namespace sluice::server
