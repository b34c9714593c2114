#pragma once

#include <memory>

#include "base/status.h"

namespace sluice::server::pgwire {

// Logs in for the connections of this process whose secret is keys instead of a password
// (catalog/key_login.h), and hands them the connection, on a thread of its own. For the processes
// of jobs on pods. Thread-safe.
class KeyDesk {
 public:
  static Result<std::unique_ptr<KeyDesk>> Start();
  ~KeyDesk();

 private:
  class Server;
  explicit KeyDesk(std::unique_ptr<Server> server);

  const std::unique_ptr<Server> server_;
};

}  // namespace sluice::server::pgwire
