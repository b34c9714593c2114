#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/data_source.h"
#include "catalog/table_loader.h"

namespace sluice::executor {
class ResultSink;
}

namespace sluice::server {

// The database that a file is loaded into, as far as loading needs it. Not thread-safe.
class LoadTarget {
 public:
  virtual ~LoadTarget() = default;
  // The name as the database interprets it when it is written without quotes.
  virtual std::string Fold(std::string_view name) const = 0;
  // Whether it accepts texts for columns of all types, and reports the place of a wrong one.
  virtual bool ReadsTexts() const = 0;
  virtual Result<std::optional<catalog::TableName>> Find(const catalog::TableName& table) = 0;
  virtual Result<Schema> Columns(const catalog::TableName& table) = 0;
  virtual Result<std::unique_ptr<catalog::TableLoader>> Open(const catalog::TableName& table,
                                                             const Schema& columns, bool make) = 0;
  virtual std::vector<std::string> TakeNotices() = 0;
};

// The text as an SQL literal.
std::string SqlLiteral(std::string_view text);

// Runs an SQL script and passes its answers to the sink.
using RunSql = std::function<Status(const std::string& script, executor::ResultSink& sink)>;

// A database that can be reached only by running scripts: the rows go there as one script of
// INSERTs in a transaction, of at most parser::kMaxScriptBytes. `run` outlives it.
std::unique_ptr<LoadTarget> MakeScriptTarget(const RunSql& run, bool postgres);

}  // namespace sluice::server
