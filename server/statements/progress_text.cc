#include "server/statements/progress_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "server/config/terminal.h"

namespace sluice::server {
namespace {

constexpr size_t kNameBytes = 40;                             // of a metric
constexpr double kLongestSeconds = 100 * 365.25 * 24 * 3600;  // beyond, an estimate says nothing

std::string WithCommas(double number) {
  std::string digits = fmt::format("{:.0f}", number);
  for (size_t end = digits.size(); end > 3; end -= 3) {
    digits.insert(end - 3, ",");
  }
  return digits;
}

std::string Duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(seconds));
  if (whole < 60) {
    return fmt::format("{} s", whole);
  }
  if (whole < 3600) {
    return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  }
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

}  // namespace

double ShareDone(const elastic::Progress& progress) {
  if (progress.rows_total <= 0) {
    return 0;
  }
  const double share =
      static_cast<double>(progress.rows_done) / static_cast<double>(progress.rows_total);
  return std::clamp(share, 0.0, 1.0);
}

std::string FormatProgress(const elastic::Progress& progress) {
  std::string text;
  if (progress.epochs > 0) {
    text += fmt::format("epoch {}/{}  ", progress.epoch, progress.epochs);
  }
  if (progress.rows_total > 0) {
    text += fmt::format("{:.0f} %  {} of {} rows", 100 * ShareDone(progress),
                        WithCommas(static_cast<double>(progress.rows_done)),
                        WithCommas(static_cast<double>(progress.rows_total)));
  } else {
    text += fmt::format("{} rows", WithCommas(static_cast<double>(progress.rows_done)));
  }
  if (progress.rows_per_second > 0 && std::isfinite(progress.rows_per_second)) {
    text += fmt::format("  {} rows/s", WithCommas(progress.rows_per_second));
  }
  if (progress.loss != 0 && std::isfinite(progress.loss)) {
    text += fmt::format("  loss {:.4f}", progress.loss);
  }
  if (!progress.metrics.empty()) {
    text +=
        fmt::format("  {} {:.4f}", Printable(progress.metrics.front().first.substr(0, kNameBytes)),
                    progress.metrics.front().second);
  }
  if (progress.workers > 0) {
    text += fmt::format("  {} {}", progress.workers, progress.workers == 1 ? "worker" : "workers");
  }
  if (progress.seconds_left > 0 && progress.seconds_left < kLongestSeconds) {
    text += fmt::format("  {} left", Duration(progress.seconds_left));
  }
  return text;
}

}  // namespace sluice::server
