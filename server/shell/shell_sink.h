#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "base/clock.h"
#include "executor/executor.h"
#include "server/shell/output.h"
#include "server/shell/progress_bar.h"

namespace sluice::server {

// The answers of a script for someone at a shell: rows on `out`, notices and progress on `err`.
// Not thread-safe.
class ShellSink final : public executor::ResultSink {
 public:
  // `err_columns`: width of the terminal behind `err`, 0 when it is none.
  ShellSink(OutputFormat format, std::FILE* out, std::FILE* err, size_t err_columns);

  Status Header(const Schema& schema) override;
  Status Rows(const RowBatch& batch) override;
  void Notice(const std::string& message) override;
  void Progress(const elastic::Progress& progress) override;
  void Done(const std::string& tag) override;

  // Prints what an interrupted statement had sent, clears the bar, and flushes. Returns the first
  // error of `out` (a full disk, a closed pipe).
  Status Finish();
  // Nobody reads `out` any more.
  bool output_closed() const { return output_closed_; }

 private:
  Status Print(std::string_view text);
  void Tell(const std::string& line);
  Status EndRowSet();

  std::FILE* const out_;
  std::FILE* const err_;
  const SteadyClock clock_;
  ProgressBar bar_;
  std::unique_ptr<RowPrinter> printer_;
  bool row_set_open_ = false;
  bool row_set_has_rows_ = false;
  bool row_set_shown_ = false;  // by the running statement: its tag would say nothing new
  Status output_status_;
  bool output_closed_ = false;
};

// Columns of the terminal behind a descriptor; 0 when it is none.
size_t TerminalColumns(int descriptor);

}  // namespace sluice::server
