#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/pgwire/embedded/session_statement.h"

// COPY's two formats of text. Pure; not thread-safe.
namespace sluice::server::pgwire {

using CopyRow = std::vector<std::optional<std::string>>;  // nullopt: NULL

// A row as a line, with its end.
std::string CopyLine(const CopyRow& row, const SessionStatement::CopyOptions& options);

// Cuts what a client sends, in pieces of any size, into rows.
class CopyReader {
 public:
  explicit CopyReader(const SessionStatement::CopyOptions& options) : options_(options) {}

  // Calls `take` for each row that is whole, until it says an error. 22P04: it is no row.
  using Take = std::function<Status(const CopyRow& row)>;
  Status Add(std::string_view bytes, const Take& take);
  // The last row may have no line's end.
  Status End(const Take& take);
  int64_t line() const { return line_; }

 private:
  Status TakeLine(std::string_view line, const Take& take);
  Status ReadCsv(std::string_view line, CopyRow* row) const;
  void ReadText(std::string_view line, CopyRow* row) const;

  const SessionStatement::CopyOptions options_;
  std::string held_;
  size_t seen_ = 0;      // of held_: no line ends there
  bool quoted_ = false;  // at seen_
  bool ended_ = false;   // by "\."
  int64_t line_ = 0;
};

}  // namespace sluice::server::pgwire
