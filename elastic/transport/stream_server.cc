#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/guarded.h"
#include "base/log.h"
#include "elastic/transport/stream_server_internal.h"

namespace sluice::elastic {
namespace {

// Strangers get a thread for so long, and only so many of them at a time: a new one replaces the
// oldest.
constexpr std::chrono::seconds kHandshake(10);
constexpr std::ptrdiff_t kMaxHandshakes = 64;

}  // namespace

StreamServer::StreamServer(JobKey key, Serve serve)
    : key_(std::move(key)), serve_(std::move(serve)), encryption_(Encryption::Make(key_)) {}

StreamServer::~StreamServer() {
  {
    const MutexLock lock(mutex_);
    over_ = true;
    for (const Session& session : sessions_) {
      shutdown(session.control.descriptor(), SHUT_RDWR);
    }
  }
  for (Session& session : sessions_) {  // none is added or removed any more
    session.thread.join();
  }
}

void StreamServer::Take(Socket socket) {
  const MutexLock lock(mutex_);
  sessions_.remove_if([](const Session& session) { return session.over; });
  const auto waits = [](const Session& session) {
    return !session.admitted && !session.given_up && !session.over;
  };
  if (std::count_if(sessions_.begin(), sessions_.end(), waits) >= kMaxHandshakes) {
    Session& oldest = *std::find_if(sessions_.begin(), sessions_.end(), waits);
    oldest.given_up = true;
    shutdown(oldest.control.descriptor(), SHUT_RDWR);
  }
  Socket control = Socket::Duplicate(socket.descriptor());
  if (over_ || !control.open()) {
    return;
  }
  Session& session = sessions_.emplace_back();
  session.control = std::move(control);
  try {
    session.thread = std::jthread([this, &session, socket = std::move(socket)]() mutable {
      pthread_setname_np(pthread_self(), "message stream");
      Run(session, std::move(socket));
    });
  } catch (const std::system_error& error) {  // no room for a thread: whoever called may try again
    sessions_.pop_back();
    log::Warn("a stream of messages is refused: {}", error.what());
  }
}

void StreamServer::Run(Session& session, Socket socket) {
  TuneServerConnection(socket);
  const Status status = Guarded("a stream of messages", [&]() -> Status {
    RETURN_IF_ERROR(encryption_.status());
    ASSIGN_OR_RETURN(MessageStream stream,
                     MessageStream::Accept(std::move(socket), key_, encryption_->get(),
                                           std::chrono::steady_clock::now() + kHandshake));
    {
      const MutexLock lock(mutex_);
      session.admitted = true;
    }
    serve_(stream);
    return Status();
  });
  if (!status.ok()) {
    log::Info("a connection was refused: {}", status.message());
  }
  const MutexLock lock(mutex_);
  session.control = Socket();
  session.over = true;
}

}  // namespace sluice::elastic
