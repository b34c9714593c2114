#include "executor/processes/process_title.h"

#include <fmt/core.h>

#include <algorithm>

namespace sluice::executor {

std::string TitleOfJob(int64_t job) {
  return fmt::format("sluice: job {}", job);
}

std::string TitleOfProcess(std::string_view name) {
  constexpr std::string_view kJob = "job";
  std::string words(name);
  std::replace(words.begin(), words.end(), '-', ' ');
  if (words.starts_with(kJob)) {
    words.insert(kJob.size(), " ");
  }
  return "sluice: " + words;
}

}  // namespace sluice::executor
