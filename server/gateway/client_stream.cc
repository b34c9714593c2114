#include <fmt/core.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/guarded.h"
#include "base/log.h"
#include "server/gateway/client_stream_internal.h"

namespace sluice::server {
namespace {

// Limit for one client's unwritten messages. A message of rows is about a megabyte; a longer one is
// accepted when the queue is empty.
constexpr size_t kQueueBytes = 4 << 20;
constexpr size_t kQueueNotices = 1'000;
// Interval between looks at the client while the last messages are written.
constexpr std::chrono::milliseconds kLookInterval(200);

}  // namespace

ClientStream::ClientStream(Call call, const Clock& clock, double seconds)
    : call_(std::move(call)),
      clock_(clock),
      seconds_(seconds),
      writer_([this](const std::stop_token& end) {
        pthread_setname_np(pthread_self(), "client");
        if (!Guarded("writing to a client", [&] { WriteAll(end); }).ok()) {
          CutOffClient();
        }
      }) {}

ClientStream::~ClientStream() = default;

Status ClientStream::Send(Message message) {
  MutexLock lock(mutex_);
  changed_.wait(lock.native(), [this]() REQUIRES(mutex_) { return gone_ || bytes_ < kQueueBytes; });
  if (gone_) {
    return Cancelled(too_slow_ ? fmt::format("the client took no message for {} seconds", seconds_)
                               : "the client went away");
  }
  Push(std::move(message), Kind::kRows);
  return OkStatus();
}

void ClientStream::Notify(Message notice) {
  const MutexLock lock(mutex_);
  if (notices_ < kQueueNotices) {
    Push(std::move(notice), Kind::kNotice);
  }
}

void ClientStream::Show(Message progress) {
  const MutexLock lock(mutex_);
  const auto old = std::find_if(queue_.begin(), queue_.end(),
                                [](const Entry& entry) { return entry.kind == Kind::kProgress; });
  if (old != queue_.end()) {
    bytes_ -= old->bytes;
    queue_.erase(old);
  }
  Push(std::move(progress), Kind::kProgress);
}

void ClientStream::Drain() {
  const auto look = [this] {
    MutexLock lock(mutex_);
    return changed_.wait_for(lock.native(), kLookInterval, [this]() REQUIRES(mutex_) {
      return gone_ || (queue_.empty() && !writing_since_);
    });
  };
  while (!look() && !IsGone()) {
  }
}

bool ClientStream::IsGone() {
  bool late = false;
  {
    const MutexLock lock(mutex_);
    late = !gone_ && writing_since_ && SecondsBetween(*writing_since_, clock_.Now()) > seconds_;
    too_slow_ = too_slow_ || late;
  }
  if (late) {
    log::Warn("a client is cut off: it took no message for {} seconds", seconds_);
    CutOffClient();
    call_.cut_off();  // outside the lock: it runs arbitrary code
  }
  return late || call_.is_gone();
}

void ClientStream::Push(Message message, Kind kind) {
  if (gone_) {
    return;
  }
  const size_t bytes = message->ByteSizeLong();
  bytes_ += bytes;
  notices_ += kind == Kind::kNotice ? 1 : 0;
  queue_.push_back({std::move(message), kind, bytes});
  changed_.notify_all();
}

void ClientStream::WriteAll(const std::stop_token& end) {
  for (;;) {
    Entry entry;
    {
      MutexLock lock(mutex_);
      writing_since_.reset();
      changed_.notify_all();
      changed_.wait(lock.native(), end,
                    [this]() REQUIRES(mutex_) { return gone_ || !queue_.empty(); });
      if (gone_ || end.stop_requested()) {
        return;
      }
      entry = std::move(queue_.front());
      queue_.pop_front();
      bytes_ -= entry.bytes;
      notices_ -= entry.kind == Kind::kNotice ? 1 : 0;
      writing_since_ = clock_.Now();
    }
    if (!call_.write(*entry.message)) {
      CutOffClient();
      return;
    }
  }
}

void ClientStream::CutOffClient() {
  const MutexLock lock(mutex_);
  gone_ = true;
  queue_.clear();
  bytes_ = 0;
  notices_ = 0;
  changed_.notify_all();
}

}  // namespace sluice::server
