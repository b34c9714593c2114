#include "server/pgwire/key_desk.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <csignal>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catalog/key_login.h"
#include "server/pgwire/backend_connection_internal.h"
#include "server/pgwire/cancel_request_internal.h"
#include "server/pgwire/desk_internal.h"
#include "server/pgwire/scram_keys.h"
#include "server/pgwire/tls_context_internal.h"
#include "server/pgwire/visitor_login_internal.h"

namespace sluice::server::pgwire {

class KeyDesk::Server {
 public:
  Server()
      : desk_(context_, buffer_, catalog::KeyDeskHost(),
              {[this](Visitor visitor) { Enter(std::move(visitor)); },
               [this](uint32_t process, uint32_t key) { Cancel(process, key); }}) {}
  ~Server() { context_.stop(); }

  Status Start() {
    RETURN_IF_ERROR(desk_.Listen());
    // Signals are for the process's other threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::jthread([this] { context_.run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return OkStatus();
  }

 private:
  // A server, and how to talk to it.
  struct Place {
    Upstream upstream;
    TlsContext tls;
  };

  void Enter(Visitor visitor) {
    const catalog::KeyDeskRequest request = catalog::ReadKeyDeskToken(visitor.token);
    Result<ScramKeys> keys = ReadKeySecret(request.secret);
    if (!keys.ok()) {
      return visitor.Refuse(keys.status());
    }
    const Result<const Place*> place = Find(request.url);
    if (!place.ok()) {
      return visitor.Refuse(place.status());
    }
    LogVisitorIn(std::move(visitor), *std::move(keys),
                 std::make_shared<BackendConnection>(context_, (*place)->upstream,
                                                     (*place)->tls.get(), buffer_),
                 buffer_, nullptr);
  }

  Result<const Place*> Find(const std::string& url) {
    std::unique_ptr<Place>& place = places_[url];
    if (place == nullptr) {
      auto found = std::make_unique<Place>();
      ASSIGN_OR_RETURN(found->upstream, UpstreamOf(url));
      ASSIGN_OR_RETURN(found->tls, ClientTls(found->upstream));
      place = std::move(found);
    }
    return place.get();
  }

  // A back end's key is known to its own server only.
  void Cancel(uint32_t process, uint32_t key) {
    for (const auto& [url, place] : places_) {
      if (place != nullptr) {
        CancelBackend(context_, place->upstream, process, key, [] {});
      }
    }
  }

  std::vector<char> buffer_ = std::vector<char>(kDeskBufferBytes);
  std::map<std::string, std::unique_ptr<Place>> places_;  // by URL; a job reads from one
  boost::asio::io_context context_{1};
  const boost::asio::executor_work_guard<boost::asio::io_context::executor_type> open_ =
      boost::asio::make_work_guard(context_);
  Desk desk_;
  std::jthread thread_;  // last: it uses the others
};

KeyDesk::KeyDesk(std::unique_ptr<Server> server) : server_(std::move(server)) {}
KeyDesk::~KeyDesk() = default;

Result<std::unique_ptr<KeyDesk>> KeyDesk::Start() {
  auto server = std::make_unique<Server>();
  RETURN_IF_ERROR(server->Start());
  return std::unique_ptr<KeyDesk>(new KeyDesk(std::move(server)));
}

}  // namespace sluice::server::pgwire
