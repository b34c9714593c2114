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

// The login of a session.
struct SessionLogin {
  std::string user;
  std::string database;
  std::string password;  // or a ticket instead
  std::string address;   // the client's address
  // Where the ticket is used to log in; without a host, the password is used at the server itself.
  catalog::SessionLink desk = {};
};

struct StatementRequest {
  OwnStatement statement;
  SessionLogin login;
  bool transaction = false;      // the session is inside a transaction block
  catalog::SessionLink session;  // where its back end can be borrowed; no host: there is no server
  std::vector<std::string> settings;  // without a server: the session's settings, as SET statements
  std::stop_token stop;
  std::stop_token gone;  // before `stop`, when the client disconnects
};

class WireSink;

// Runs the statements of the door's sessions. Thread-safe.
class StatementService {
 public:
  virtual ~StatementService() = default;
  // Both return at once. The statement runs on another thread, which calls `ended` last; after that
  // it does not use the sink.
  virtual void Run(StatementRequest request, std::shared_ptr<WireSink> sink,
                   std::function<void(const Status&)> ended) = 0;
  // The columns of the statement's answer; no columns: no rows. Runs nothing.
  virtual void Describe(StatementRequest request,
                        std::function<void(const Result<Schema>&)> described) = 0;
  // A session has logged in with the server's consent. Does not block.
  virtual void LoggedIn(const SessionLogin& /*login*/) {}
  // Whether SET sluice.name = value is allowed. Does not block.
  virtual Status CheckSetting(std::string_view set) = 0;
};

}  // namespace sluice::server::pgwire
