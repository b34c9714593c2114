#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "parser/ast.h"

namespace sluice::executor {
class ResultSink;
}

namespace sluice::server {

class Session;

// A session's prepared statements of ours, by the names in PREPARE. The database's own stay there.
// Not thread-safe.
class PreparedStatements {
 public:
  static constexpr size_t kMost = 1'000;
  static constexpr size_t kMostBytes = size_t{16} << 20;  // of their texts

  // A PREPARE of ours. 42P05: the name is taken; 53400: more than kMost or kMostBytes.
  Status Prepare(std::string_view sql);
  bool Has(std::string_view name) const { return statements_.find(name) != statements_.end(); }
  // DEALLOCATE; "": all. False: there is none of that name.
  bool Forget(std::string_view name);

  struct Prepared {
    std::vector<std::string> types;  // of its parameters, as written
    std::string text;
  };
  const Prepared* Find(std::string_view name) const;

 private:
  std::map<std::string, Prepared, std::less<>> statements_;
  size_t bytes_ = 0;
};

// Runs PREPARE, EXECUTE, EXPLAIN EXECUTE, DEALLOCATE and DISCARD ALL as far as they concern
// prepared statements of ours. nullopt: the statement is (also) the database's. The database
// computes EXECUTE's arguments.
std::optional<Status> RunPrepared(const parser::PlainStatement& statement, Session& session,
                                  executor::ResultSink& sink);

// The text of ours that an EXECUTE runs; "": `sql` is no EXECUTE of a prepared statement of ours.
std::string_view ExecutedText(std::string_view sql, Session& session);

}  // namespace sluice::server
