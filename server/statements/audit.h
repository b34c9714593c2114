#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "catalog/sql/sql_text.h"
#include "server/statements/audit_lines.h"
#include "server/statements/full_texts.h"
#include "server/statements/refused_logins.h"
#include "server/statements/statement_use.h"

namespace sluice::server {

// Who does something, from where, and by which door.
struct AuditedClient {
  std::string door;  // "grpc", "postgresql"
  std::string role;  // that logged in, or its claimed name where nobody does
  std::string address;
  std::string database;  // "": the gateway's own
};

// What happens in a gateway, on record: a line of the log for each login and statement, and in
// full, as JSON, in the audit, if there is one. Every event passes through here. Refused logins
// that repeat are told together (RefusedLogins). Thread-safe.
//
// Where a line cannot be written (58030), what it is about is refused; an end cannot be, and is an
// error in the log.
class Audit {
 public:
  // `target`: a path, "syslog", or "" for the log only. Writes a first line.
  static Result<std::unique_ptr<Audit>> Open(const std::string& target);
  // The log only.
  Audit() : Audit(nullptr) {}
  ~Audit();

  // Whether more than the log is kept.
  bool is_kept() const { return lines_ != nullptr; }

  // `outcome`: OK, or why the client was refused. `backend`: the number of its process in the
  // server; 0: none.
  Status Login(const AuditedClient& client, const Status& outcome, int64_t backend = 0);
  // Before the statement runs. Returns its number, for its end.
  Result<int64_t> Begins(const AuditedClient& client, std::string_view sql,
                         catalog::Dialect dialect);
  // `session_role`: on whose behalf it ran, if that is another role than the one that logged in.
  void Ends(int64_t statement, const AuditedClient& client, const std::string& session_role,
            const Status& outcome, double seconds, const StatementUse& use);
  // A client that knows a session's key asks for the end of its statement. `backend`: as in the
  // session's login.
  void Cancel(const AuditedClient& client, int64_t backend);
  // A script that does not get as far as its first statement.
  void Refused(const AuditedClient& client, const Status& why);

 private:
  explicit Audit(std::unique_ptr<AuditLines> lines);
  class Line;
  std::string NameOf(int64_t statement) const;
  Status Write(Line& line);
  void WriteAfterwards(Line& line);
  bool MayBeInFull(const AuditedClient& client, size_t bytes) EXCLUDES(mutex_);
  // Whether the login is told now, not later with others.
  bool IsToldNow(const AuditedClient& client, const Status& outcome) EXCLUDES(mutex_);
  void Tell(const std::vector<RefusedLogins::Sum>& sums) EXCLUDES(mutex_);
  void TellSums(const std::stop_token& end) EXCLUDES(mutex_);

  const std::unique_ptr<AuditLines> lines_;  // null: the log only
  const int64_t begun_micros_;               // makes the numbers of statements unique
  std::atomic<int64_t> statements_ = 0;
  const SteadyClock clock_;
  Mutex mutex_;
  RefusedLogins refused_ GUARDED_BY(mutex_);
  FullTexts full_texts_ GUARDED_BY(mutex_);
  std::condition_variable_any refused_changed_;
  std::jthread teller_ GUARDED_BY(mutex_);  // since the first refusal
};

}  // namespace sluice::server
