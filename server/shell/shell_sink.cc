#include "server/shell/shell_sink.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/utf8.h"
#include "server/config/terminal.h"
#include "server/shell/table_layout.h"

namespace sluice::server {

namespace {

// False if a write would block: a stopped terminal (Ctrl-S), a pipe that is not read.
bool TakesText(std::FILE* file) {
  pollfd waiting = {fileno(file), POLLOUT, 0};
  return poll(&waiting, 1, 0) != 0;
}

// Lines that the text takes on a terminal.
size_t LinesOf(std::string_view text, size_t columns) {
  size_t lines = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const size_t width = end - begin > columns ? DisplayWidth(text.substr(begin, end - begin)) : 0;
    lines += columns == 0 || width <= columns ? 1 : (width + columns - 1) / columns;
    begin = end + 1;
  }
  return lines;
}

winsize SizeOf(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0) {
    size = {};
  }
  return size;
}

}  // namespace

ShellSink::ShellSink(const Display& display, Screen screen)
    : display_(display),
      screen_(std::move(screen)),
      bar_(
          [err = screen_.err](std::string_view text) {
            if (TakesText(err)) {  // drop progress rather than hold up the job
              std::fwrite(text.data(), 1, text.size(), err);
              std::fflush(err);
            }
          },
          clock_, screen_.err_columns),
      statement_began_(clock_.Now()) {}

Status ShellSink::Header(const Schema& schema) {
  RETURN_IF_ERROR(EndRowSet());
  row_set_open_ = true;
  row_set_has_rows_ = false;
  row_set_shown_ = true;
  TableStyle style;
  style.columns = screen_.out_columns;
  style.expanded = display_.expanded;
  style.rounding = done_ < rounding_.size() ? rounding_[done_] : Rounding::kNone;
  printer_ = RowPrinter::Make(
      display_.format, [this](std::string_view text) { return Print(text); }, style);
  return printer_->Header(schema);
}

Status ShellSink::Rows(const RowBatch& batch) {
  if (!row_set_open_) {
    return Internal("rows came without their header");
  }
  row_set_has_rows_ = row_set_has_rows_ || batch.rows > 0;
  return printer_->Rows(batch);
}

Status ShellSink::Copied(std::string_view text) {
  row_set_shown_ = true;
  return Print(text);
}

void ShellSink::Notice(const std::string& message) {
  bar_.Clear();
  PrintLine(message);
}

void ShellSink::Progress(const elastic::Progress& progress) {
  if (!pager_) {
    bar_.Update(progress);
  }
}

void ShellSink::Done(const std::string& tag) {
  bar_.Clear();
  // An error of `out` is kept in output_status_ and reported by Finish.
  const bool printed = EndRowSet().ok();
  if (printed && !row_set_shown_ && !tag.empty()) {
    PrintLine(tag);
  }
  if (display_.timing) {
    PrintLine(fmt::format("Time: {:.3f} ms", 1e3 * SecondsBetween(statement_began_, clock_.Now())));
  }
  statement_began_ = clock_.Now();
  row_set_shown_ = false;
  ++done_;
}

Status ShellSink::Finish() {
  bar_.Clear();
  // A statement that failed before its first row has no result set, so do not print "no rows".
  row_set_open_ = row_set_open_ && row_set_has_rows_;
  const Status ended = EndRowSet();
  FlushHeld();
  if (pager_) {
    if (pager_->Close() == 127) {
      PrintLine(
          fmt::format("there is no pager '{}': \\pset pager off does without", screen_.pager));
    }
    pager_.reset();
    std::fwrite(told_meanwhile_.data(), 1, told_meanwhile_.size(), screen_.err);
    told_meanwhile_.clear();
  }
  std::fflush(screen_.out);
  std::fflush(screen_.err);
  return ended.ok() ? output_status_ : ended;
}

Status ShellSink::Print(std::string_view text) {
  bar_.Clear();
  if (screen_.pager.empty() || !display_.pager || pager_) {
    return WriteOut(text);
  }
  held_ += text;
  held_lines_ += LinesOf(text, screen_.out_columns);
  if (held_lines_ < screen_.lines) {
    return output_status_;
  }
  // With these options less ends at once if the output fits on the screen, and leaves it there.
  pager_ = PipedProgram::Start("LESS=${LESS-FRX}; export LESS; " + screen_.pager);
  std::string held;
  held.swap(held_);
  held_lines_ = 0;
  return WriteOut(held);
}

void ShellSink::FlushHeld() {
  std::string held;
  held.swap(held_);
  held_lines_ = 0;
  if (!held.empty()) {
    static_cast<void>(WriteOut(held));  // kept in output_status_
  }
}

Status ShellSink::WriteOut(std::string_view text) {
  if (pager_left_ || !output_status_.ok()) {
    return output_status_;
  }
  std::FILE* const out = pager_ ? pager_->input() : screen_.out;
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), out) == text.size() && std::fflush(out) == 0) {
    return OkStatus();
  }
  if (pager_) {
    pager_left_ = true;
    // The other statements of the script still run; the last one, which is only looked at, may
    // stop.
    output_status_ = IsLastStatement() ? Cancelled("the pager was left") : OkStatus();
    return output_status_;
  }
  output_closed_ = errno == EPIPE;
  output_status_ =
      Status(Code::kUnavailable, fmt::format("cannot write the rows: {}", std::strerror(errno)));
  return output_status_;
}

// Where standard error is closed there is no one to tell.
void ShellSink::PrintLine(const std::string& line) {
  const std::string shown = PrintableLines(line) + "\n";
  if (pager_) {
    told_meanwhile_ += shown;
    return;
  }
  FlushHeld();
  std::fwrite(shown.data(), 1, shown.size(), screen_.err);
}

Status ShellSink::EndRowSet() {
  if (!row_set_open_) {
    return output_status_;
  }
  row_set_open_ = false;
  return printer_->Finish();
}

size_t TerminalColumns(int descriptor) {
  constexpr size_t kUnknownWidth = 80;
  if (isatty(descriptor) == 0) {
    return 0;
  }
  const size_t columns = SizeOf(descriptor).ws_col;
  return columns > 0 ? columns : kUnknownWidth;
}

size_t TerminalLines(int descriptor) {
  constexpr size_t kUnknownHeight = 24;
  if (isatty(descriptor) == 0) {
    return 0;
  }
  const size_t lines = SizeOf(descriptor).ws_row;
  return lines > 0 ? lines : kUnknownHeight;
}

}  // namespace sluice::server
