#pragma once

#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <unordered_map>

namespace sluice::server::pgwire {

// Which sockets of a context can be read and written. It has an epoll of its own, where each socket
// is entered once: Asio enters it anew for each wait, one system call of four for a message that is
// passed on. Belongs to the context's one thread; keeps the context from running out of work.
class ReadySockets final : public boost::asio::execution_context::service {
 public:
  static boost::asio::execution_context::id id;

  explicit ReadySockets(boost::asio::io_context& context);
  ~ReadySockets() override;

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
  void Post(Then then, bool ok);

  boost::asio::io_context& context_;
  boost::asio::posix::stream_descriptor epoll_;
  std::unordered_map<uint64_t, Socket*> sockets_;
  uint64_t next_ = 0;
  bool shut_down_ = false;
};

}  // namespace sluice::server::pgwire
