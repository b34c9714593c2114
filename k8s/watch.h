#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"
#include "k8s/api_client.h"
#include "k8s/api_verbs.h"
#include "k8s/known_objects.h"

namespace sluice::k8s {

class TransferSet;

// Follows the objects of a selection: lists them, then watches over an HTTP/1.1 connection of its
// own, and recovers from any failure. A version that is too old (410: as the answer, as an event,
// in a list's pages) or too new (504) leads to a new list; a stream that is silent for 90 s
// (bookmarks come each minute) is dead; it lists each minute in any case.
class ObjectWatch {
 public:
  // Called one at a time: first from Start, then from the watch's thread. It must not destroy the
  // watch.
  using Listener = std::function<void(const ObjectChange&)>;

  // Passes all existing objects to the listener, then returns. An error of the first list is
  // returned.
  static Result<std::unique_ptr<ObjectWatch>> Start(ApiClient& client, Selection selection,
                                                    Listener listener, const std::stop_token& stop);
  ~ObjectWatch();  // no call of the listener afterwards

  // How often it has started over since Start, by reason: "gone", "silent", "ended", ...
  // Thread-safe.
  std::map<std::string, uint64_t> restarts() const EXCLUDES(mutex_);

 private:
  // What to do after a stream has ended.
  struct Ending {
    std::string reason;
    bool list = false;  // before the next stream
    bool pause = false;
  };

  ObjectWatch(ApiClient& client, Selection selection, Listener listener);

  void Loop(const std::stop_token& stop);
  Status List(const std::stop_token& stop);
  Ending Follow(const std::stop_token& stop);
  Ending EndingOf(Fault fault, const std::string& message) const;
  bool Apply(const std::string& frame, Ending& ending);
  void Pause(const std::stop_token& stop);
  ApiRequest WatchRequest() const;

  ApiClient& client_;
  const Selection selection_;
  const Listener listener_;
  const std::unique_ptr<TransferSet> set_;
  // Used by Start, then by the thread.
  KnownObjects known_;
  TimePoint listed_{};
  int failures_ = 0;  // in a row

  mutable Mutex mutex_;
  std::map<std::string, uint64_t> restarts_ GUARDED_BY(mutex_);

  std::jthread thread_;
};

}  // namespace sluice::k8s
