#include "executor/client_teller.h"

#include <utility>

#include "base/guarded.h"
#include "executor/executor.h"

namespace sluice::executor {
namespace {

// A few minutes of a training's output.
constexpr size_t kMostUnread = 256;

}  // namespace

ClientTeller::ClientTeller(ResultSink& sink)
    : sink_(sink), thread_([this](const std::stop_token& stop) { Run(stop); }) {}

ClientTeller::~ClientTeller() {
  Finish();
}

void ClientTeller::Tell(const elastic::Progress& progress) {
  Put(progress);
}

void ClientTeller::Notify(const std::string& notice) {
  Put(notice);
}

void ClientTeller::Put(Message message) {
  const MutexLock lock(mutex_);
  if (finished_) {
    return;
  }
  if (waiting_.size() == kMostUnread) {
    waiting_.pop_front();
  }
  waiting_.push_back(std::move(message));
  changed_.notify_one();
}

void ClientTeller::Finish() {
  {
    const MutexLock lock(mutex_);
    finished_ = true;
  }
  thread_.request_stop();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void ClientTeller::Run(const std::stop_token& stop) {
  for (;;) {
    Message message;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock.native(), stop,
                    [this]() NO_THREAD_SAFETY_ANALYSIS { return !waiting_.empty(); });
      if (waiting_.empty()) {
        return;
      }
      message = std::move(waiting_.front());
      waiting_.pop_front();
    }
    [[maybe_unused]] const Status told = Guarded("telling the client", [&] {  // logged there
      if (const auto* progress = std::get_if<elastic::Progress>(&message)) {
        sink_.Progress(*progress);
      } else {
        sink_.Notice(std::get<std::string>(message));
      }
    });
  }
}

}  // namespace sluice::executor
