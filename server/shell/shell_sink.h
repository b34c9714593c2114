#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "executor/executor.h"
#include "server/shell/output.h"
#include "server/shell/piped_program.h"
#include "server/shell/progress_bar.h"

namespace sluice::server {

// How a session shows answers.
struct Display {
  OutputFormat format = OutputFormat::kTable;
  Expanded expanded = Expanded::kOff;
  bool timing = false;  // how long each statement took
  bool pager = true;    // if there is one
};

// Where answers are shown.
struct Screen {
  std::FILE* out = stdout;
  std::FILE* err = stderr;
  size_t out_columns = 0;  // width of the terminal behind `out`, 0 when it is none
  size_t err_columns = 0;
  size_t lines = 0;        // the terminal's height
  std::string pager = {};  // command for output longer than that; "": none
};

// Shows a script's answers at a shell: rows on `out`, notices and progress on `err`. Not
// thread-safe.
class ShellSink final : public executor::ResultSink {
 public:
  ShellSink(const Display& display, Screen screen);

  // Which numbers to round in the tables of the script's statements, in their order.
  void ExpectStatements(std::vector<Rounding> rounding) { rounding_ = std::move(rounding); }

  Status Header(const Schema& schema) override;
  Status Rows(const RowBatch& batch) override;
  Status Copied(std::string_view text) override;
  void Notice(const std::string& message) override;
  void Progress(const elastic::Progress& progress) override;
  void Done(const std::string& tag) override;

  // Prints what an interrupted statement had sent, clears the bar, flushes, and waits for the
  // pager. Returns the first error of `out` (a full disk, a closed pipe).
  Status Finish();
  // The reader of `out` has closed it.
  bool output_closed() const { return output_closed_; }
  // The user left the pager before the last statement had ended, which was therefore stopped.
  bool pager_left() const { return pager_left_; }
  // Number of statements that have succeeded.
  size_t statements_done() const { return done_; }

 private:
  Status Print(std::string_view text);
  Status WriteOut(std::string_view text);
  void FlushHeld();
  void PrintLine(const std::string& line);
  Status EndRowSet();
  bool IsLastStatement() const { return done_ + 1 >= rounding_.size(); }

  const Display display_;
  const Screen screen_;
  const SteadyClock clock_;
  ProgressBar bar_;
  std::vector<Rounding> rounding_;
  size_t done_ = 0;
  TimePoint statement_began_;
  std::unique_ptr<RowPrinter> printer_;
  bool row_set_open_ = false;
  bool row_set_has_rows_ = false;
  bool row_set_shown_ = false;  // by the running statement: then its tag adds nothing
  Status output_status_;
  bool output_closed_ = false;

  std::string held_;  // output, as long as it fits on the screen
  size_t held_lines_ = 0;
  std::unique_ptr<PipedProgram> pager_;
  bool pager_left_ = false;
  std::string told_meanwhile_;
};

// Width of the terminal behind a descriptor; 0 if it is not a terminal.
size_t TerminalColumns(int descriptor);
size_t TerminalLines(int descriptor);

}  // namespace sluice::server
