#include "server/gateway/readiness.h"

#include <chrono>
#include <utility>

#include "base/guarded.h"
#include "base/log.h"

namespace sluice::server {
namespace {

constexpr std::chrono::seconds kPause{3};

}  // namespace

Readiness::Readiness(std::function<Status()> look)
    : look_(std::move(look)), thread_([this](const std::stop_token& stop) { Run(stop); }) {}

Status Readiness::last() const {
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(last_);
  const bool fresh = succeeded_ && SecondsBetween(*succeeded_, clock_.Now()) < kPatienceSeconds;
  return fresh ? OkStatus() : Unavailable("the database has not answered yet");
}

void Readiness::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const Status looked = Guarded("asking the database", look_);
    MutexLock lock(mutex_);
    if (looked.ok()) {
      succeeded_ = clock_.Now();
    }
    if (looked.ok() != last_.ok()) {
      log::Warn("this gateway is {}",
                looked.ok() ? "ready again" : "not ready: " + looked.message());
    }
    last_ = looked;
    wake_.wait_for(lock.native(), stop, kPause, [] { return false; });
  }
}

}  // namespace sluice::server
