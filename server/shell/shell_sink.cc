#include "server/shell/shell_sink.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "server/config/terminal.h"

namespace sluice::server {

namespace {

// False where a write would wait: a terminal that is stopped (Ctrl-S), a pipe that nobody reads.
bool TakesText(std::FILE* file) {
  pollfd waiting = {fileno(file), POLLOUT, 0};
  return poll(&waiting, 1, 0) != 0;
}

}  // namespace

ShellSink::ShellSink(OutputFormat format, std::FILE* out, std::FILE* err, size_t err_columns)
    : out_(out),
      err_(err),
      bar_(
          [err](std::string_view text) {
            if (TakesText(err)) {  // progress is dropped rather than the job held up
              std::fwrite(text.data(), 1, text.size(), err);
              std::fflush(err);
            }
          },
          clock_, err_columns),
      printer_(RowPrinter::Make(format, [this](std::string_view text) { return Print(text); })) {}

Status ShellSink::Header(const Schema& schema) {
  RETURN_IF_ERROR(EndRowSet());
  row_set_open_ = true;
  row_set_has_rows_ = false;
  row_set_shown_ = true;
  return printer_->Header(schema);
}

Status ShellSink::Rows(const RowBatch& batch) {
  row_set_has_rows_ = row_set_has_rows_ || batch.rows > 0;
  return printer_->Rows(batch);
}

void ShellSink::Notice(const std::string& message) {
  bar_.Clear();
  Tell(message);
}

void ShellSink::Progress(const elastic::Progress& progress) {
  bar_.Update(progress);
}

void ShellSink::Done(const std::string& tag) {
  bar_.Clear();
  // An error of `out` is kept in output_status_ and told by Finish.
  const bool printed = EndRowSet().ok();
  if (printed && !row_set_shown_ && !tag.empty()) {
    Tell(tag);
  }
  row_set_shown_ = false;
}

Status ShellSink::Finish() {
  bar_.Clear();
  // A statement that failed before its first row has answered nothing, not "no rows".
  row_set_open_ = row_set_open_ && row_set_has_rows_;
  RETURN_IF_ERROR(EndRowSet());
  std::fflush(out_);
  std::fflush(err_);
  return output_status_;
}

Status ShellSink::Print(std::string_view text) {
  bar_.Clear();
  errno = 0;
  if (output_status_.ok() &&
      (std::fwrite(text.data(), 1, text.size(), out_) != text.size() || std::fflush(out_) != 0)) {
    output_closed_ = errno == EPIPE;
    output_status_ =
        Status(Code::kUnavailable, fmt::format("cannot write the rows: {}", std::strerror(errno)));
  }
  return output_status_;
}

// Where standard error is closed there is nobody to tell.
void ShellSink::Tell(const std::string& line) {
  const std::string shown = PrintableLines(line) + "\n";
  std::fwrite(shown.data(), 1, shown.size(), err_);
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
  winsize size{};
  if (isatty(descriptor) == 0) {
    return 0;
  }
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUnknownWidth;
}

}  // namespace sluice::server
