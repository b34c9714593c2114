#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/pgwire/backend_login.h"
#include "server/pgwire/channel_internal.h"
#include "server/pgwire/login_work.h"
#include "server/pgwire/upstream.h"

namespace sluice::server::pgwire {

// Connects to the server behind the door and logs in, up to its first ReadyForQuery. Belongs to the
// I/O thread; lives until it has called back or was closed.
class BackendConnection final : public std::enable_shared_from_this<BackendConnection> {
 public:
  struct Outcome {
    Status status;        // the server cannot be reached, or is no PostgreSQL
    std::string refusal;  // or the server's whole ErrorResponse, if it refused
    // Or the channel, if the server is ready; everything that it sent has been read.
    std::unique_ptr<Channel> channel = nullptr;
    std::unique_ptr<BackendLogin> login = nullptr;
  };
  using Then = std::function<void(Outcome)>;

  // `tls`: for connections to the server. `buffer`: shared by all readers on this thread. `work`:
  // does what takes a while; null: this thread does.
  BackendConnection(boost::asio::io_context& context, const Upstream& upstream, SSL_CTX* tls,
                    std::vector<char>& buffer, LoginWork* work = nullptr);

  // `then` is called once, possibly before this returns.
  void Start(StartupMessage startup, BackendSecret secret, Then then);
  // `then` is not called after this.
  void Close();

 private:
  void Dial();
  void ConnectTo(std::vector<boost::asio::ip::tcp::endpoint> addresses);
  void Connected(int descriptor);
  void LogIn();
  void WaitToRead();
  void WaitToSend();
  void Read();
  bool Take(std::string_view bytes);
  void Prove();
  void Proved(const Result<std::string>& answer);
  void TakeTlsAnswer(std::string_view bytes);
  void Send(std::string_view bytes);
  std::string WhyClosed() const;
  void CannotConnect(std::string_view why);
  void End(Outcome outcome);

  boost::asio::io_context& context_;
  const Upstream& upstream_;
  SSL_CTX* const tls_;
  std::vector<char>& buffer_;
  LoginWork* const work_;
  boost::asio::ip::tcp::resolver resolver_;
  StartupMessage startup_;
  BackendSecret secret_;
  Then then_;  // null: already called
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<BackendLogin> login_;
  bool asked_for_tls_ = false;  // and not answered yet
  bool bound_ = false;          // with channel binding to the server's certificate
};

}  // namespace sluice::server::pgwire
