#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/data_source.h"
#include "server/pgwire/conversation.h"

namespace sluice::server::pgwire {

// Who a session has logged in as, and where.
struct SessionLogin {
  std::string user;
  std::string database;
  std::string password;  // or a ticket in its place
  std::string address;   // the client's
  // Where the ticket logs in; without a host: the password does, at the server itself.
  catalog::SessionLink desk = {};
};

struct StatementRequest {
  OwnStatement statement;
  SessionLogin login;
  bool transaction = false;      // the session is inside a transaction block
  catalog::SessionLink session;  // its back end can be borrowed there; no host: there is no server
  std::vector<std::string> settings;  // without a server: what the session has SET, as statements
  std::stop_token stop;
  std::stop_token gone;  // before `stop`: the client has gone, and has not cancelled
};

class WireSink;

// What runs the statements of the door's sessions. Thread-safe.
class StatementService {
 public:
  virtual ~StatementService() = default;
  // Both return at once; the statement runs on another thread, which calls `ended` last, and says
  // nothing to the sink afterwards.
  virtual void Run(StatementRequest request, std::shared_ptr<WireSink> sink,
                   std::function<void(const Status&)> ended) = 0;
  // The columns of what the statement would answer; no columns: no rows. Runs nothing.
  virtual void Describe(StatementRequest request,
                        std::function<void(const Result<Schema>&)> described) = 0;
  // A session has logged in, with the server's consent. Does not block.
  virtual void LoggedIn(const SessionLogin& /*login*/) {}
  // SET sluice.name = value: whether it may be. Does not block.
  virtual Status CheckSetting(std::string_view set) = 0;
};

}  // namespace sluice::server::pgwire
