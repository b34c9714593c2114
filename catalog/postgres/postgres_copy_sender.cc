#include <pthread.h>

#include <utility>

#include "base/guarded.h"
#include "catalog/postgres/postgres_copy_sender_internal.h"

namespace sluice::catalog {

CopySender::CopySender(Send send)
    : send_(std::move(send)), thread_([this](const std::stop_token& end) { Run(end); }) {}

CopySender::~CopySender() {
  thread_.request_stop();
  thread_.join();
}

Status CopySender::Put(std::string text) {
  MutexLock lock(mutex_);
  changed_.wait(lock.native(), [this]() REQUIRES(mutex_) {
    return waiting_bytes_ < kMostBytes || !failure_.ok();
  });
  if (failure_.ok()) {
    waiting_bytes_ += text.size();
    waiting_.push_back(std::move(text));
    changed_.notify_all();
  }
  return failure_;
}

Status CopySender::Finish() {
  MutexLock lock(mutex_);
  changed_.wait(lock.native(), [this]() REQUIRES(mutex_) {
    return (waiting_.empty() && !sending_) || !failure_.ok();
  });
  return failure_;
}

void CopySender::Run(const std::stop_token& end) {
  pthread_setname_np(pthread_self(), "copy");
  for (;;) {
    std::string text;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock.native(), end, [this]() REQUIRES(mutex_) { return !waiting_.empty(); });
      if (end.stop_requested() || !failure_.ok()) {
        return;
      }
      text = std::move(waiting_.front());
      waiting_.pop_front();
      waiting_bytes_ -= text.size();
      sending_ = true;
      changed_.notify_all();
    }
    Status sent = Guarded("sending rows", [&] { return send_(text); });
    const MutexLock lock(mutex_);
    sending_ = false;
    failure_ = std::move(sent);
    changed_.notify_all();
  }
}

}  // namespace sluice::catalog
