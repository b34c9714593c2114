#include "server/pgwire/client_line.h"

#include <utility>

namespace sluice::server::pgwire {
namespace {

// Enough to keep a connection busy; a session uses no more memory than this for rows.
constexpr size_t kMostOnItsWay = size_t{1} << 20;

}  // namespace

ClientLine::ClientLine(Post post, Client client)
    : post_(std::move(post)), client_(std::make_shared<Client>(std::move(client))) {}

bool ClientLine::Send(std::string bytes) {
  {
    MutexLock lock(mutex_);
    changed_.wait(lock.native(),
                  [this]() REQUIRES(mutex_) { return closed_ || on_its_way_ < kMostOnItsWay; });
    if (closed_) {
      return false;
    }
    on_its_way_ += bytes.size();
  }
  post_([client = client_, bytes = std::move(bytes)] { client->says(bytes); });
  return true;
}

void ClientLine::Tell(std::string bytes) {
  {
    const MutexLock lock(mutex_);
    if (closed_ || on_its_way_ >= kMostOnItsWay) {
      return;
    }
    on_its_way_ += bytes.size();
  }
  post_([client = client_, bytes = std::move(bytes)] { client->says(bytes); });
}

int64_t ClientLine::Suspend() {
  {
    const MutexLock lock(mutex_);
    suspended_ = true;
  }
  post_([client = client_] { client->suspended(); });
  MutexLock lock(mutex_);
  changed_.wait(lock.native(), [this]() REQUIRES(mutex_) { return closed_ || !suspended_; });
  return closed_ ? -1 : next_rows_;
}

void ClientLine::Taken(size_t bytes) {
  {
    const MutexLock lock(mutex_);
    on_its_way_ -= bytes;
  }
  changed_.notify_all();
}

void ClientLine::Resume(uint32_t max_rows) {
  {
    const MutexLock lock(mutex_);
    suspended_ = false;
    next_rows_ = max_rows;
  }
  changed_.notify_all();
}

void ClientLine::Close() {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

}  // namespace sluice::server::pgwire
