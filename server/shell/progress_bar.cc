#include "server/shell/progress_bar.h"

#include <algorithm>
#include <cmath>

#include "server/statements/progress_text.h"

namespace sluice::server {
namespace {

constexpr double kSecondsBetweenPlainLines = 3;  // a log is read later: fewer lines say more
constexpr size_t kBarCells = 20;

}  // namespace

ProgressBar::ProgressBar(Write write, const Clock& clock, size_t columns)
    : write_(std::move(write)), clock_(clock), columns_(columns) {}

void ProgressBar::Update(const elastic::Progress& progress) {
  const std::string text = FormatProgress(progress);
  if (columns_ == 0) {
    const TimePoint now = clock_.Now();
    if (!last_line_ || SecondsBetween(*last_line_, now) >= kSecondsBetweenPlainLines) {
      last_line_ = now;
      write_(text + "\n");
    }
    return;
  }
  const auto full = static_cast<size_t>(std::lround(ShareDone(progress) * kBarCells));
  std::string line =
      "[" + std::string(full, '#') + std::string(kBarCells - full, '.') + "]  " + text;
  // A line that wraps could not be drawn over. It is ASCII but for metric names, which are too.
  line.resize(std::min(line.size(), columns_ - 1));
  write_("\r" + line + "\x1b[K");
  drawn_ = true;
}

void ProgressBar::Clear() {
  if (drawn_) {
    write_("\r\x1b[K");
    drawn_ = false;
  }
}

}  // namespace sluice::server
