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

// Which file is loaded into which table, and how the file is read.
struct LoadOptions {
  std::string file;     // "-": standard input
  std::string table;    // as written in a statement
  bool append = false;  // the table exists already
  bool has_header = true;
  char separator = 0;  // 0: whichever of , ; tab and | is most frequent in the first line
  bool lossy = false;  // bytes that are not UTF-8 become '?'
  std::optional<std::string> null_text = {};  // an unquoted field that means NULL, as "" does
};

// Loads a CSV file in one transaction, into a new table whose types are inferred from all rows, or
// as more rows of an existing table, whose columns the header names. Errors name the file, line and
// column, and leave nothing behind. Reports progress and what was made; ends with Done. 25001:
// called inside a transaction of the session.
Status LoadTable(const LoadOptions& options, catalog::DataSource& source,
                 const std::stop_token& stop, executor::ResultSink& sink);
// The same for a database that we cannot connect to ourselves.
Status LoadTableByScript(const LoadOptions& options, LoadTarget& target,
                         const std::stop_token& stop, executor::ResultSink& sink);

}  // namespace sluice::server
