#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "k8s/api_client.h"
#include "k8s/object.h"
#include "k8s/pod_spec.h"

namespace sluice::k8s {

inline constexpr Resource kEvents{"", "v1", "events"};

// Events of one object, as shown by `kubectl describe`: those with the same reason are one Event
// with a count and the last one's message. Written by a thread of its own, each at most once a
// second; an Event that cannot be written is lost, as Events are for people. Thread-safe.
class EventRecorder {
 public:
  struct About {
    std::string namespace_name;
    Owner object;
    std::string component;  // "sluice-master"
    std::string instance;   // part of the names: other recorders of the object count separately
  };
  EventRecorder(ApiClient& client, About about);
  ~EventRecorder();  // writes remaining Events, once

  // `reason`: one word, "WorkerLost". There is one Event per reason.
  void Record(bool warning, const std::string& reason, const std::string& message) EXCLUDES(mutex_);

 private:
  struct Series {
    bool warning = false;
    std::string message;
    int64_t first = 0, last = 0;  // micros
    int64_t count = 0, written = 0;
    bool made = false;
  };
  void Run(const std::stop_token& stop) EXCLUDES(mutex_);
  void Write() EXCLUDES(mutex_);
  std::string NameOf(const std::string& reason) const;
  std::string EventJson(const std::string& reason, const Series& series) const;

  ApiClient& client_;
  const About about_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool dirty_ GUARDED_BY(mutex_) = false;
  std::map<std::string, Series> series_ GUARDED_BY(mutex_);  // by reason
  std::jthread thread_;                                      // last: uses the members above
};

}  // namespace sluice::k8s
