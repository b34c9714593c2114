#include "elastic/worker/reader_thread.h"

#include <chrono>
#include <utility>

#include "base/guarded.h"

namespace sluice::elastic {
namespace {

// Between two looks whether the shard is still wanted: a piece of some milliseconds.
constexpr size_t kPieceRows = 4096;
// Between two looks of the waiting thread at its own stop request, and its reports to the master.
constexpr auto kWait = std::chrono::milliseconds(50);

}  // namespace

ReaderThread::ReaderThread(ShardLoader& loader, ProfileSum* profile)
    : loader_(loader),
      profile_(profile),
      thread_([this](const std::stop_token& end) { Run(end); }) {}

ReaderThread::~ReaderThread() {
  Stop();
}

void ReaderThread::Begin(Then then) {
  reading_ = true;
  const MutexLock lock(mutex_);
  then_ = std::move(then);
  state_ = State::kWanted;
  changed_.notify_all();
}

Result<bool> ReaderThread::Wait() {
  MutexLock lock(mutex_);
  changed_.wait_for(lock.native(), kWait,
                    [this]() REQUIRES(mutex_) { return state_ == State::kOver; });
  if (state_ != State::kOver) {
    return false;
  }
  state_ = State::kIdle;
  reading_ = false;
  return std::exchange(result_, false);
}

void ReaderThread::Stop() {
  if (!reading_) {
    return;
  }
  MutexLock lock(mutex_);
  if (state_ == State::kWanted) {
    state_ = State::kStopping;
  }
  changed_.wait(lock.native(), [this]() REQUIRES(mutex_) { return state_ == State::kOver; });
  state_ = State::kIdle;
  reading_ = false;
}

void ReaderThread::Run(const std::stop_token& end) {
  for (;;) {
    Then then;
    {
      MutexLock lock(mutex_);
      if (!changed_.wait(lock.native(), end, [this]() REQUIRES(mutex_) {
            return state_ == State::kWanted || state_ == State::kStopping;
          })) {
        return;
      }
      then = std::exchange(then_, {});
    }
    Result<bool> result = ReadShard(then);
    const MutexLock lock(mutex_);
    result_ = std::move(result);
    state_ = State::kOver;
    changed_.notify_all();
  }
}

Result<bool> ReaderThread::ReadShard(const Then& then) {
  PhaseClock clock(Phase::kTransforming, profile_);
  PhaseClock* const before = loader_.SetClock(&clock);
  Result<bool> complete = Guarded("reading a shard", [&]() -> Result<bool> {
    ASSIGN_OR_RETURN(const bool read, Pump());
    if (read && then != nullptr) {
      RETURN_IF_ERROR(then(&clock));
    }
    return read;
  });
  loader_.SetClock(before);
  return complete;
}

Result<bool> ReaderThread::Pump() {
  Result<bool> complete = false;
  while (complete.ok() && !*complete && Wanted()) {
    complete = loader_.Pump(kPieceRows);
  }
  return complete;
}

bool ReaderThread::Wanted() {
  const MutexLock lock(mutex_);
  return state_ == State::kWanted;
}

}  // namespace sluice::elastic
