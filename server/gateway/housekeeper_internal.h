#pragma once

#include <chrono>
#include <stop_token>
#include <thread>

#include "server/statements/source_pool.h"

namespace sluice::server {

// Keeps the databases clean that a gateway has opened: removes what ended statements and killed
// processes have left there, soon after, and jobs that ended longer ago than `keep_jobs` (zero:
// never), with what is stored of them.
class Housekeeper {
 public:
  Housekeeper(const SourcePool& sources, std::chrono::hours keep_jobs);

 private:
  void Run(const std::stop_token& end) const;
  void DropLeftovers() const;
  void DropOldJobs(const std::stop_token& end) const;

  const SourcePool& sources_;
  const std::chrono::hours keep_jobs_;
  std::jthread thread_;  // last: uses the others
};

}  // namespace sluice::server
