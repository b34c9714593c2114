#pragma once

#include <chrono>
#include <stop_token>

namespace sluice {

// Waits for so long, or until `stop`. False: it was stopped. Thread-safe.
bool SleepFor(std::chrono::duration<double> duration, const std::stop_token& stop);

}  // namespace sluice
