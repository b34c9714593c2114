#pragma once

#include <functional>
#include <stop_token>
#include <thread>

#include "base/mutex.h"

namespace sluice::server {

// Blocks SIGINT, SIGTERM and SIGHUP in this thread and all later ones and ignores SIGPIPE, so that
// signals arrive where they are waited for. Call first in main, before any thread exists.
void BlockSignals();

// A descriptor that becomes readable when raised (an eventfd). Thread-safe.
class WakeEvent {
 public:
  WakeEvent();
  ~WakeEvent();
  WakeEvent(const WakeEvent&) = delete;
  WakeEvent& operator=(const WakeEvent&) = delete;
  int descriptor() const { return descriptor_; }
  void Raise();
  void Clear();

 private:
  const int descriptor_;
};

// A thread that waits for the blocked signals and hands each to `handler`.
class SignalThread {
 public:
  using Handler = std::function<void(int signal)>;
  explicit SignalThread(Handler handler);
  ~SignalThread();
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  void Run();

  const Handler handler_;
  WakeEvent end_;
  std::jthread thread_;
};

// Ctrl-C in the shell: stops the script that is running, or, between two, the next one; at the
// prompt it makes wake_descriptor() readable. SIGTERM and SIGHUP do the same and also ask the shell
// to end. Thread-safe.
class Interrupts {
 public:
  Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  std::stop_token BeginScript();
  void EndScript();

  int wake_descriptor() const { return wake_.descriptor(); }
  // Forgets a signal that came at the prompt.
  void ClearWake();
  bool terminate_requested() const;

 private:
  void OnSignal(int signal);

  WakeEvent wake_;
  mutable Mutex mutex_;
  std::stop_source script_ GUARDED_BY(mutex_);
  bool running_ GUARDED_BY(mutex_) = false;
  bool stops_next_ GUARDED_BY(mutex_) = false;
  bool terminate_ GUARDED_BY(mutex_) = false;
  SignalThread thread_;  // last: its handler uses the members above
};

// Blocks until SIGINT, SIGTERM or SIGHUP.
void WaitForTermination();

}  // namespace sluice::server
