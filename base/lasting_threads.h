#pragma once

#include <functional>

namespace sluice {

// Calls `work` on one of a few threads that last as long as the process, and returns when it is
// done. For libpg_query, which takes a pthread key for each thread that calls it: there are 1,024
// for the process and all its libraries, and a gateway with a thread for each session would have
// none left. Exceptions of `work` are the caller's. Thread-safe.
void OnLastingThread(const std::function<void()>& work);

}  // namespace sluice
