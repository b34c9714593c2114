#include "executor/jobs/job_closer.h"

#include <chrono>
#include <utility>

#include "base/guarded.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/job_store.h"
#include "catalog/sql/sqlstate.h"

namespace sluice::executor {
namespace {

constexpr std::chrono::seconds kCloserPause{1};

Status WriteDown(const EndedJob& ended, const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const auto catalog, catalog::OpenCatalog(ended.url, ended.secret, stop));
  const std::unique_ptr<catalog::JobStore> jobs = catalog->JobsFor(stop);
  RETURN_IF_ERROR(jobs->AddEvents(ended.job.id, ended.events));
  Status written = jobs->End(ended.job);
  return catalog::IsJobOver(written) ? OkStatus() : written;
}

}  // namespace

void JobCloser::Close(EndedJob ended) {
  const MutexLock lock(mutex_);
  open_.push_back(std::move(ended));
  ++unwritten_;
  changed_.notify_all();
  if (!thread_.joinable()) {
    thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  }
}

void JobCloser::WaitUntilClosed(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  changed_.wait(lock.native(), stop, [this]() REQUIRES(mutex_) { return unwritten_ == 0; });
}

void JobCloser::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<EndedJob> open;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock.native(), stop, [this]() REQUIRES(mutex_) { return !open_.empty(); });
      open.swap(open_);
    }
    std::vector<EndedJob> left;
    for (EndedJob& ended : open) {
      if (stop.stop_requested()) {
        return;
      }
      const Status written = Guarded("closing a job", [&] { return WriteDown(ended, stop); });
      if (catalog::MayBeWrittenLater(written)) {
        left.push_back(std::move(ended));
      } else if (!written.ok()) {
        log::Error("job={} end not recorded: {}", ended.job.id, written.ToString());
      }
    }
    MutexLock lock(mutex_);
    open_.insert(open_.end(), std::make_move_iterator(left.begin()),
                 std::make_move_iterator(left.end()));
    unwritten_ = open_.size();
    changed_.notify_all();
    if (!open_.empty()) {
      changed_.wait_for(lock.native(), stop, kCloserPause, [] { return false; });
    }
  }
}

}  // namespace sluice::executor
