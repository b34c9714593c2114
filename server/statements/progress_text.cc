#include "server/statements/progress_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/utf8.h"
#include "server/config/terminal.h"

namespace sluice::server {
namespace {

constexpr size_t kNameBytes = 40;                             // of a metric's name
constexpr double kLongestSeconds = 100 * 365.25 * 24 * 3600;  // meaningless beyond this

std::string WithCommas(double number) {
  std::string digits = fmt::format("{:.0f}", number);
  for (size_t end = digits.size(); end > 3; end -= 3) {
    digits.insert(end - 3, ",");
  }
  return digits;
}

// Of a loss or a metric: of the same width from one moment to the next.
std::string Figure(double value) {
  return std::abs(value) < 1000 ? fmt::format("{:.4f}", value) : fmt::format("{:.6g}", value);
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

std::string FormatProgress(const elastic::Progress& progress, size_t most_bytes) {
  // In display order; the parts with the smallest worth are left out first.
  struct Part {
    int worth;
    std::string text;
  };
  std::vector<Part> parts;
  if (progress.epochs > 0) {
    parts.push_back({5, fmt::format("epoch {}/{}", progress.epoch, progress.epochs)});
  }
  if (progress.rows_total > 0) {
    parts.push_back({6, fmt::format("{:.0f} %", 100 * ShareDone(progress))});
    parts.push_back(
        {2, fmt::format("{} of {} rows", WithCommas(static_cast<double>(progress.rows_done)),
                        WithCommas(static_cast<double>(progress.rows_total)))});
  } else {
    parts.push_back(
        {6, fmt::format("{} rows", WithCommas(static_cast<double>(progress.rows_done)))});
  }
  if (progress.rows_per_second > 0 && std::isfinite(progress.rows_per_second)) {
    parts.push_back({3, fmt::format("{} rows/s", WithCommas(progress.rows_per_second))});
  }
  if (progress.loss != 0 && std::isfinite(progress.loss)) {
    parts.push_back({7, "loss " + Figure(progress.loss)});
  }
  if (!progress.metrics.empty() && std::isfinite(progress.metrics.front().second)) {
    const auto& [name, value] = progress.metrics.front();
    parts.push_back(
        {4, fmt::format("{} {}", Printable(name.substr(0, kNameBytes)), Figure(value))});
  }
  if (progress.workers > 0) {
    parts.push_back(
        {1, fmt::format("{} {}", progress.workers, progress.workers == 1 ? "worker" : "workers")});
  }
  if (progress.seconds_left > 0 && progress.seconds_left < kLongestSeconds) {
    parts.push_back({8, fmt::format("{} left", Duration(progress.seconds_left))});
  }
  for (;;) {
    std::string text;
    for (const Part& part : parts) {
      text += (text.empty() ? "" : "  ") + part.text;
    }
    if (text.size() <= most_bytes || parts.size() <= 1) {
      return text;
    }
    parts.erase(std::min_element(parts.begin(), parts.end(),
                                 [](const Part& a, const Part& b) { return a.worth < b.worth; }));
  }
}

}  // namespace sluice::server
