#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "base/status.h"

namespace sluice::catalog {
class DataSource;
}
namespace sluice::executor {
class ResultSink;
}

namespace sluice::server {

class LoadTarget;

// Which file goes into which table, and how it is read.
struct LoadOptions {
  std::string file;     // "-": standard input
  std::string table;    // as it would stand in a statement
  bool append = false;  // the table is there already
  bool has_header = true;
  char separator = 0;  // 0: of , ; tab and | the one that the first line has most of
  std::optional<std::string> null_text = {};  // a field without quotes that means NULL, beside ""
};

// Brings a CSV file into a table, in one transaction: a new one, whose types are told by all rows,
// or more rows for one that is there, whose columns the header names. Errors have the file's name,
// line and column; nothing is left behind then. Tells progress and what was made; ends with Done.
// 25001 inside a transaction of the session.
Status LoadTable(const LoadOptions& options, catalog::DataSource& source,
                 const std::stop_token& stop, executor::ResultSink& sink);
// The same for a database that is not ours to connect to.
Status LoadTableByScript(const LoadOptions& options, LoadTarget& target,
                         const std::stop_token& stop, executor::ResultSink& sink);

}  // namespace sluice::server
