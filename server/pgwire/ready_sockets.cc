#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>
#include <vector>

#include "server/pgwire/ready_sockets_internal.h"

namespace sluice::server::pgwire {
namespace {

constexpr size_t kMostEvents = 64;  // of one answer
// While answers are expected: the wait for one, and the time after which the context's timers get
// their turn.
constexpr int kPatienceMilliseconds = 50;
constexpr std::chrono::milliseconds kLongestStay(100);
constexpr uint64_t kWakeNumber = 0;  // no socket's

}  // namespace

boost::asio::execution_context::id ReadySockets::id;

ReadySockets::ReadySockets(boost::asio::io_context& context)
    : service(context),
      context_(context),
      epoll_(context, epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  WakeBy(wake_);
  Wait();
}

void ReadySockets::WakeBy(int descriptor) {
  epoll_event wake = {};
  wake.events = EPOLLIN | EPOLLET;  // each write, or client, is an event: nobody has to read it
  wake.data.u64 = kWakeNumber;
  epoll_ctl(epoll_.native_handle(), EPOLL_CTL_ADD, descriptor, &wake);
}

ReadySockets::~ReadySockets() {
  close(wake_);
}

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
  const auto end = std::chrono::steady_clock::now() + kLongestStay;
  int patience = 0;  // the first answer is there already
  int count = 0;
  do {
    count = Ask(events, patience);
    answer_expected_ = false;
    woken_ = false;
    for (int event = 0; event < count; ++event) {
      const epoll_event& told = events[static_cast<size_t>(event)];
      Tell(told.data.u64, told.events);
    }
    answer_expected_ = answer_expected_ && !woken_ && asio_awaited_ == 0;
    patience = answer_expected_ ? kPatienceMilliseconds : 0;
  } while ((answer_expected_ || count == static_cast<int>(events.size())) &&
           std::chrono::steady_clock::now() < end);
}

// How many events there are; 0 also if Asio has something to do.
int ReadySockets::Ask(std::span<epoll_event> events, int milliseconds) {
  waiting_ = true;  // from here on, Post writes to wake_
  const bool leave = milliseconds > 0 && posted_.exchange(false);
  const int count = leave ? 0
                          : epoll_wait(epoll_.native_handle(), events.data(),
                                       static_cast<int>(events.size()), milliseconds);
  waiting_ = false;
  return count;
}

void ReadySockets::Post(boost::asio::io_context& context, std::function<void()> work) {
  boost::asio::post(context, std::move(work));
  auto& sockets = boost::asio::use_service<ReadySockets>(context);
  sockets.posted_ = true;
  if (sockets.waiting_) {
    eventfd_write(sockets.wake_, 1);
  }
}

void ReadySockets::Tell(uint64_t number, uint32_t events) {
  woken_ = woken_ || number == kWakeNumber;
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

void ReadySockets::WakeBy(boost::asio::io_context& context, int descriptor) {
  boost::asio::use_service<ReadySockets>(context).WakeBy(descriptor);
}

std::shared_ptr<void> ReadySockets::AwaitAsio(boost::asio::io_context& context) {
  auto& sockets = boost::asio::use_service<ReadySockets>(context);
  ++sockets.asio_awaited_;
  return {&sockets, [](ReadySockets* awaiting) { --awaiting->asio_awaited_; }};
}

void ReadySockets::PostThen(Then then, bool ok) {
  if (then && !shut_down_) {
    posted_ = true;
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
    sockets_.PostThen(std::move(then), false);
  } else if (readable_) {
    sockets_.PostThen(std::move(then), true);
  } else {
    on_readable_ = std::move(then);
  }
}

void ReadySockets::Socket::WaitWritable(Then then, bool or_readable) {
  or_readable_ = or_readable;
  if (!is_open()) {
    sockets_.PostThen(std::move(then), false);
  } else if (broken_ || (or_readable && readable_)) {
    sockets_.PostThen(std::move(then), true);
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
  sockets_.PostThen(std::exchange(on_readable_, {}), false);
  sockets_.PostThen(std::exchange(on_writable_, {}), false);
}

}  // namespace sluice::server::pgwire
