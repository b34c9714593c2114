#pragma once

#include <atomic>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>

struct epoll_event;

namespace sluice::server::pgwire {

// Which sockets of a context can be read and written. It has an epoll of its own, where each socket
// is registered once: Asio registers it anew for each wait, one system call of four for a message
// that is passed on. While messages are being passed on, the context's thread waits in this epoll,
// for a fraction of a second at a time, instead of returning to Asio's, which costs three system
// calls more; Asio's timers are late by as much. Belongs to the context's one thread, but for Post;
// keeps the context from running out of work.
class ReadySockets final : public boost::asio::execution_context::service {
 public:
  static boost::asio::execution_context::id id;

  explicit ReadySockets(boost::asio::io_context& context);
  ~ReadySockets() override;

  // Runs `work` on the context's thread, soon even if that thread waits in this epoll. Use it
  // instead of boost::asio::post. Thread-safe.
  static void Post(boost::asio::io_context& context, std::function<void()> work);
  // Asio waits for clients at this descriptor: one that comes ends a wait in this epoll.
  static void WakeBy(boost::asio::io_context& context, int descriptor);
  // While the result lives, something that Asio does is awaited, so the thread does not wait here.
  static std::shared_ptr<void> AwaitAsio(boost::asio::io_context& context);

  // False: the socket was closed meanwhile.
  using Then = std::function<void(bool ok)>;

  // One socket, which is closed when this goes.
  class Socket {
   public:
    Socket(boost::asio::io_context& context, int descriptor);
    ~Socket();
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;

    int descriptor() const { return descriptor_; }
    bool is_open() const { return descriptor_ >= 0; }

    // `then` is called once, perhaps for nothing, and never from inside. One at a time of each.
    void WaitReadable(Then then);
    // For who has found that nothing more can be sent. `or_readable`: what is read may help, too.
    void WaitWritable(Then then, bool or_readable);
    // A read has found nothing more: the next wait is for what comes from now on.
    void Drained() { readable_ = ended_; }
    // There is something to read, whatever the socket says.
    void Undrained() { readable_ = true; }
    // What has just been passed on will probably be answered at once.
    void ExpectAnswer() { sockets_.answer_expected_ = true; }
    void Close();

   private:
    friend class ReadySockets;

    ReadySockets& sockets_;
    int descriptor_;
    const uint64_t number_;
    bool readable_ = false;  // perhaps
    bool ended_ = false;     // the peer has said its last word: nobody is told of that again
    bool broken_ = false;    // nor hears it anything
    bool or_readable_ = false;
    Then on_readable_;
    Then on_writable_;
  };

 private:
  void shutdown() override;
  void Wait();
  void TellAll();
  void Tell(uint64_t number, uint32_t events);
  void PostThen(Then then, bool ok);
  int Ask(std::span<epoll_event> events, int milliseconds);
  void WakeBy(int descriptor);

  boost::asio::io_context& context_;
  boost::asio::posix::stream_descriptor epoll_;
  std::unordered_map<uint64_t, Socket*> sockets_;
  uint64_t next_ = 0;
  bool shut_down_ = false;
  bool answer_expected_ = false;
  bool woken_ = false;                 // Asio has something to do
  int asio_awaited_ = 0;               // AwaitAsio's
  const int wake_;                     // an eventfd in the epoll
  std::atomic<bool> waiting_ = false;  // the thread waits in the epoll, so wake_ is needed
  std::atomic<bool> posted_ = false;   // there may be work that only Asio knows of
};

}  // namespace sluice::server::pgwire
