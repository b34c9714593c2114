#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/pgwire/embedded/session_statement.h"

// COPY's text and CSV formats. Pure; not thread-safe.
namespace sluice::server::pgwire {

// The longest row, in whatever format: more would be kept until its end comes.
inline constexpr size_t kMostOfRow = size_t{64} << 20;

using CopyRow = std::vector<std::optional<std::string>>;  // nullopt: NULL

// A row as a line, with its line end.
std::string CopyLine(const CopyRow& row, const SessionStatement::CopyOptions& options);

// Splits a client's data, which comes in pieces of any size, into rows.
class CopyReader {
 public:
  explicit CopyReader(const SessionStatement::CopyOptions& options) : options_(options) {}

  // Calls `take` for each complete row, until it returns an error. 22P04: malformed. 54000: too
  // long.
  using Take = std::function<Status(const CopyRow& row)>;
  Status Add(std::string_view bytes, const Take& take);
  // The last row may lack its line end.
  Status End(const Take& take);
  int64_t line() const { return line_; }

 private:
  Status TakeLine(std::string_view line, const Take& take);
  Status ReadCsv(std::string_view line, CopyRow* row) const;
  void ReadText(std::string_view line, CopyRow* row) const;

  const SessionStatement::CopyOptions options_;
  std::string held_;
  size_t seen_ = 0;      // bytes of held_ without a line end
  bool quoted_ = false;  // whether the byte at seen_ is inside quotes
  bool ended_ = false;   // by "\."
  int64_t line_ = 0;
};

}  // namespace sluice::server::pgwire
