#include "executor/training/client_reporter.h"

#include <utility>

#include "base/guarded.h"
#include "executor/executor.h"

namespace sluice::executor {
namespace {

// A few minutes of a training's output.
constexpr size_t kMaxUnread = 256;

}  // namespace

ClientReporter::ClientReporter(ResultSink& sink)
    : sink_(sink), thread_([this](const std::stop_token& stop) { Run(stop); }) {}

ClientReporter::~ClientReporter() {
  Finish();
}

void ClientReporter::Report(const elastic::Progress& progress) {
  Put(progress);
}

void ClientReporter::Notify(const std::string& notice) {
  Put(notice);
}

void ClientReporter::Put(Message message) {
  const MutexLock lock(mutex_);
  if (finished_) {
    return;
  }
  if (waiting_.size() == kMaxUnread) {
    waiting_.pop_front();
  }
  waiting_.push_back(std::move(message));
  changed_.notify_one();
}

void ClientReporter::Finish() {
  {
    const MutexLock lock(mutex_);
    finished_ = true;
  }
  thread_.request_stop();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void ClientReporter::Run(const std::stop_token& stop) {
  for (;;) {
    Message message;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock.native(), stop, [this]() REQUIRES(mutex_) { return !waiting_.empty(); });
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
