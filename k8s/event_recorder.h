#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "k8s/api_client.h"
#include "k8s/object.h"
#include "k8s/pod_spec.h"

namespace sluice::k8s {

inline constexpr Resource kEvents{"", "v1", "events"};

// Events of objects, as shown by `kubectl describe`: those of an object with the same
// reason are one Event with a count and the last one's message. Written by a thread of its own,
// each at most once a second; an Event that cannot be written is lost, as Events are for people.
// Thread-safe.
class EventRecorder {
 public:
  struct By {
    std::string namespace_name;  // of the objects, unless RecordIn says another one
    std::string component;       // "sluice-master"
    std::string instance;        // part of the names: other recorders of an object count separately
  };
  EventRecorder(ApiClient& client, By by);
  ~EventRecorder();  // writes remaining Events, once

  // `reason`: one word, "WorkerLost". There is one Event per object and reason.
  void Record(const Owner& object, bool warning, const std::string& reason,
              const std::string& message) EXCLUDES(mutex_);
  void RecordIn(const std::string& namespace_name, const Owner& object, bool warning,
                const std::string& reason, const std::string& message) EXCLUDES(mutex_);
  // The object is gone: its Events are no longer counted, nor written.
  void Forget(const std::string& uid) EXCLUDES(mutex_);

 private:
  using Name = std::pair<std::string, std::string>;  // the object's uid, and the reason
  struct Series {
    std::string namespace_name;
    Owner object;
    bool warning = false;
    std::string message;
    int64_t first = 0, last = 0;  // micros
    int64_t count = 0, written = 0;
    bool made = false;
  };
  void Run(const std::stop_token& stop) EXCLUDES(mutex_);
  void Write() EXCLUDES(mutex_);
  std::string NameOf(const std::string& reason, const Series& series) const;
  std::string EventJson(const std::string& reason, const Series& series) const;

  ApiClient& client_;
  const By by_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool dirty_ GUARDED_BY(mutex_) = false;
  std::map<Name, Series> series_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last: uses the members above
};

}  // namespace sluice::k8s
