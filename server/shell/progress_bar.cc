#include "server/shell/progress_bar.h"

#include <algorithm>
#include <cmath>

#include "server/statements/progress_text.h"

namespace sluice::server {
namespace {

constexpr double kSecondsBetweenPlainLines = 3;  // fewer lines suit a log, which is read later

// In a narrow terminal the numbers take precedence over the bar.
size_t BarCells(size_t columns) {
  constexpr size_t kWide = 120;
  constexpr size_t kNarrow = 60;
  return columns >= kWide ? 20 : columns >= kNarrow ? 10 : 0;
}

}  // namespace

ProgressBar::ProgressBar(Write write, const Clock& clock, size_t columns)
    : write_(std::move(write)), clock_(clock), columns_(columns) {}

void ProgressBar::Update(const elastic::Progress& progress) {
  if (columns_ == 0) {
    const TimePoint now = clock_.Now();
    if (!last_line_ || SecondsBetween(*last_line_, now) >= kSecondsBetweenPlainLines) {
      last_line_ = now;
      write_(FormatProgress(progress) + "\n");
    }
    return;
  }
  const size_t cells = BarCells(columns_);
  const auto full =
      static_cast<size_t>(std::lround(ShareDone(progress) * static_cast<double>(cells)));
  std::string line =
      cells == 0 ? "" : "[" + std::string(full, '#') + std::string(cells - full, '.') + "]  ";
  line += FormatProgress(progress, columns_ - 1 - std::min(columns_ - 1, line.size()));
  // A line that wraps could not be redrawn. All of it is ASCII, metric names included.
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
