#pragma once

#include <functional>
#include <list>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"
#include "elastic/transport/message_stream_internal.h"

namespace sluice::elastic {

// Serves message streams, each on a thread of its own. Thread-safe.
class StreamServer {
 public:
  // Answers requests until the stream is closed. Called by several threads.
  using Serve = std::function<void(MessageStream& stream)>;

  // The key pair was used before: it is not damaged.
  StreamServer(JobKey key, Serve serve);
  // Closes all streams, and waits for their threads.
  ~StreamServer();
  void Take(Socket socket) EXCLUDES(mutex_);

 private:
  struct Session {
    Socket control;         // of the same connection, to end it from outside
    bool admitted = false;  // it belongs to the job
    bool given_up = false;  // it did not say so, and others came
    bool over = false;
    std::jthread thread;
  };
  void Run(Session& session, Socket socket) EXCLUDES(mutex_);

  const JobKey key_;
  const Serve serve_;
  const Result<std::shared_ptr<const Encryption>> encryption_;
  Mutex mutex_;
  bool over_ GUARDED_BY(mutex_) = false;
  std::list<Session> sessions_ GUARDED_BY(mutex_);
};

}  // namespace sluice::elastic
