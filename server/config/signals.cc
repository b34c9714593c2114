#include "server/config/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "base/guarded.h"

namespace sluice::server {
namespace {

sigset_t HandledSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  return signals;
}

}  // namespace

WakeEvent::WakeEvent() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  SLUICE_CHECK(descriptor_ >= 0, "no descriptor left for an eventfd at start");
}

WakeEvent::~WakeEvent() {
  close(descriptor_);
}

void WakeEvent::Raise() {
  const uint64_t one = 1;
  // Fails only when the counter is full, and then it is already readable.
  [[maybe_unused]] const ssize_t written = write(descriptor_, &one, sizeof one);
}

void WakeEvent::Clear() {
  uint64_t count = 0;
  // Fails only when it was not raised.
  [[maybe_unused]] const ssize_t size = read(descriptor_, &count, sizeof count);
}

void BlockSignals() {
  const sigset_t signals = HandledSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

SignalThread::SignalThread(Handler handler)
    : handler_(std::move(handler)), thread_([this] { Run(); }) {}

SignalThread::~SignalThread() {
  end_.Raise();
  thread_.join();
}

void SignalThread::Run() {
  pthread_setname_np(pthread_self(), "signals");
  const sigset_t signals = HandledSignals();
  const int arrivals = signalfd(-1, &signals, SFD_CLOEXEC);
  SLUICE_CHECK(arrivals >= 0, "no descriptor left for a signalfd at start");
  for (;;) {
    pollfd ready[] = {{arrivals, POLLIN, 0}, {end_.descriptor(), POLLIN, 0}};
    if (poll(ready, 2, -1) < 0 && errno == EINTR) {
      continue;
    }
    if (ready[1].revents != 0) {
      break;
    }
    signalfd_siginfo info{};
    if (ready[0].revents != 0 && read(arrivals, &info, sizeof info) == sizeof info) {
      // Logged by the handler; the next signal may find more memory.
      [[maybe_unused]] const Status handled =
          Guarded("handling a signal", [&] { handler_(static_cast<int>(info.ssi_signo)); });
    }
  }
  close(arrivals);
}

Interrupts::Interrupts() : thread_([this](int signal) { OnSignal(signal); }) {}

std::stop_token Interrupts::BeginScript() {
  const MutexLock lock(mutex_);
  script_ = std::stop_source();
  running_ = true;
  if (terminate_ || stops_next_) {
    script_.request_stop();
  }
  return script_.get_token();
}

void Interrupts::ClearWake() {
  const MutexLock lock(mutex_);
  stops_next_ = false;
  wake_.Clear();
}

void Interrupts::EndScript() {
  const MutexLock lock(mutex_);
  running_ = false;
}

bool Interrupts::terminate_requested() const {
  const MutexLock lock(mutex_);
  return terminate_;
}

void Interrupts::OnSignal(int signal) {
  std::stop_source script;
  bool running = false;
  {
    const MutexLock lock(mutex_);
    terminate_ = terminate_ || signal != SIGINT;
    running = running_;
    stops_next_ = stops_next_ || !running;
    script = script_;
  }
  if (running) {
    // Outside the lock: it runs the registered callbacks. The analyzer takes the copy for a move.
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.Move)
    script.request_stop();
  } else {
    wake_.Raise();
  }
}

void WaitForTermination() {
  const sigset_t signals = HandledSignals();
  int signal = 0;
  sigwait(&signals, &signal);
}

}  // namespace sluice::server
