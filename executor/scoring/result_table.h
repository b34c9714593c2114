#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::catalog {
class TableWriter;
}

namespace sluice::plan {
class ResultTable;
}

namespace sluice::executor {

struct Context;
class ResultSink;

// Opens a writer for the plan's table; call before reading, so that changes since planning are
// reported now. `kind` and `job` are recorded with the table. Errors of this and of the writer
// point at the table's name. `sink`: is told that a table is made anew although nobody asked for
// it.
Result<std::unique_ptr<catalog::TableWriter>> OpenResultTable(const plan::ResultTable& table,
                                                              const Schema& schema,
                                                              const std::string& kind, int64_t job,
                                                              Context& context, ResultSink& sink);

// The table as the user named it.
std::string ResultTableName(const plan::ResultTable& table);

}  // namespace sluice::executor
