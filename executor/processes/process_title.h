#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::executor {

// How `ps` shows the processes of a job: its own as "sluice: job 7", those that the fleet calls
// "job7-worker-2" as "sluice: job 7 worker 2", and after it the role, their only argument.
std::string TitleOfJob(int64_t job);
std::string TitleOfProcess(std::string_view name);

}  // namespace sluice::executor
