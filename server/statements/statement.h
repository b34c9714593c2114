#pragma once

#include <functional>
#include <string_view>

#include "base/row_batch.h"
#include "base/status.h"
#include "parser/ast.h"

namespace sluice::executor {
class ResultSink;
}

namespace sluice::server {

class Session;

// Callbacks around each statement, for a door that needs more than its rows.
struct StatementObserver {
  // An error is the statement's outcome, which then does not run.
  std::function<Status(const parser::Statement& statement)> starts;
  // Of each that has started.
  std::function<void(std::string_view sql, double seconds, const Status& outcome)> ends;
};

// The whole route: parses the script, then plans and runs its statements one after another; a
// statement is planned when those before it have run. Stops at the first error, whose spans point
// into `script`, and when session.stop() is requested (57014).
Status RunScript(std::string_view script, Session& session, executor::ResultSink& sink,
                 const StatementObserver& observer = {});

// The columns that a script of one statement of ours returns; none: no rows. Plans it, and runs
// nothing.
Result<Schema> DescribeScript(std::string_view script, Session& session);

}  // namespace sluice::server
