#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <boost/asio/post.hpp>
#include <utility>
#include <vector>

#include "server/pgwire/ready_sockets_internal.h"

namespace sluice::server::pgwire {
namespace {

// What one question may answer, and so many questions before whatever else the context has to do.
constexpr size_t kMostEvents = 64;
constexpr int kMostQuestions = 16;

}  // namespace

boost::asio::execution_context::id ReadySockets::id;

ReadySockets::ReadySockets(boost::asio::io_context& context)
    : service(context), context_(context), epoll_(context, epoll_create1(EPOLL_CLOEXEC)) {
  Wait();
}

ReadySockets::~ReadySockets() = default;

// Those who wait live in what they wait with.
void ReadySockets::shutdown() {
  shut_down_ = true;
  std::vector<Then> waiting;
  for (const auto& [number, socket] : sockets_) {
    waiting.push_back(std::exchange(socket->on_readable_, {}));
    waiting.push_back(std::exchange(socket->on_writable_, {}));
  }
}

void ReadySockets::Wait() {
  epoll_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                    [this](const boost::system::error_code& error) {
                      if (error) {
                        return;
                      }
                      struct Again {
                        ReadySockets* sockets;
                        ~Again() { sockets->Wait(); }
                      } const again{this};  // whatever escapes from who is told
                      TellAll();
                    });
}

void ReadySockets::TellAll() {
  std::array<epoll_event, kMostEvents> events;
  for (int i = 0; i < kMostQuestions; ++i) {
    const int count = epoll_wait(epoll_.native_handle(), events.data(), events.size(), 0);
    if (count <= 0) {
      return;
    }
    for (int event = 0; event < count; ++event) {
      const epoll_event& told = events[static_cast<size_t>(event)];
      Tell(told.data.u64, told.events);
    }
  }
}

void ReadySockets::Tell(uint64_t number, uint32_t events) {
  const auto known = sockets_.find(number);
  if (known == sockets_.end()) {
    return;  // closed since
  }
  Socket& socket = *known->second;
  constexpr uint32_t kBroken = EPOLLHUP | EPOLLERR;
  constexpr uint32_t kEnd = EPOLLRDHUP | kBroken;
  socket.broken_ = socket.broken_ || (events & kBroken) != 0;
  socket.ended_ = socket.ended_ || (events & kEnd) != 0;
  const bool readable = (events & (EPOLLIN | kEnd)) != 0;
  socket.readable_ = socket.readable_ || readable;
  Then read;
  Then write;
  if (readable) {
    read = std::exchange(socket.on_readable_, {});
  }
  if ((events & (EPOLLOUT | kBroken)) != 0 || (readable && socket.or_readable_)) {
    write = std::exchange(socket.on_writable_, {});
  }
  if (write) {
    write(true);
  }
  if (read) {
    read(sockets_.find(number) != sockets_.end());
  }
}

void ReadySockets::Post(Then then, bool ok) {
  if (then && !shut_down_) {
    boost::asio::post(context_, [then = std::move(then), ok] { then(ok); });
  }
}

ReadySockets::Socket::Socket(boost::asio::io_context& context, int descriptor)
    : sockets_(boost::asio::use_service<ReadySockets>(context)),
      descriptor_(descriptor),
      number_(++sockets_.next_) {
  fcntl(descriptor_, F_SETFL, fcntl(descriptor_, F_GETFL) | O_NONBLOCK);
  sockets_.sockets_[number_] = this;
  epoll_event all = {};
  all.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  all.data.u64 = number_;
  if (epoll_ctl(sockets_.epoll_.native_handle(), EPOLL_CTL_ADD, descriptor_, &all) != 0) {
    Close();
  }
}

ReadySockets::Socket::~Socket() {
  Close();
}

void ReadySockets::Socket::WaitReadable(Then then) {
  if (!is_open()) {
    sockets_.Post(std::move(then), false);
  } else if (readable_) {
    sockets_.Post(std::move(then), true);
  } else {
    on_readable_ = std::move(then);
  }
}

void ReadySockets::Socket::WaitWritable(Then then, bool or_readable) {
  or_readable_ = or_readable;
  if (!is_open()) {
    sockets_.Post(std::move(then), false);
  } else if (broken_ || (or_readable && readable_)) {
    sockets_.Post(std::move(then), true);
  } else {
    on_writable_ = std::move(then);
  }
}

void ReadySockets::Socket::Close() {
  if (!is_open()) {
    return;
  }
  // Another process may have the socket, too: closing alone would not take it out.
  epoll_event none = {};
  epoll_ctl(sockets_.epoll_.native_handle(), EPOLL_CTL_DEL, descriptor_, &none);
  close(std::exchange(descriptor_, -1));
  sockets_.sockets_.erase(number_);
  sockets_.Post(std::exchange(on_readable_, {}), false);
  sockets_.Post(std::exchange(on_writable_, {}), false);
}

}  // namespace sluice::server::pgwire
