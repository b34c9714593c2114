#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "elastic/job/training_job.h"

namespace sluice::server {

// Shows progress on a terminal as one line that is redrawn, elsewhere as a plain line every few
// seconds. Not thread-safe.
class ProgressBar {
 public:
  using Write = std::function<void(std::string_view text)>;

  // `columns`: width of the terminal; 0: not a terminal.
  ProgressBar(Write write, const Clock& clock, size_t columns);
  void Update(const elastic::Progress& progress);
  // Erases the line, before anything else is printed.
  void Clear();

 private:
  Write write_;
  const Clock& clock_;
  const size_t columns_;
  bool drawn_ = false;
  std::optional<TimePoint> last_line_;
};

}  // namespace sluice::server
