#pragma once

#include <string>
#include <string_view>

#include "catalog/sql/sql_text.h"

namespace sluice::server {

// A statement as it is recorded: on one line, without comments, with '...' and ? for its texts and
// numbers, which may be secret or personal; of SQLite's as translated for it (InEmbeddedDialect).
// Read as the database reads it, so that nothing that runs can be hidden in what is masked.
// (PostgreSQL with standard_conforming_strings on.) At most `most` bytes, with " ..." behind them
// if there are more. Thread-safe.
std::string RecordedText(std::string_view sql, catalog::Dialect dialect, size_t most);
// `text`, cut off in the same way.
std::string ShortText(std::string text, size_t most);

// The name of a column as it is recorded: SQLite names one without an alias by its expression.
std::string RecordedColumn(std::string_view name, catalog::Dialect dialect);

}  // namespace sluice::server
