#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "server/pgwire/channel_internal.h"
#include "server/pgwire/messages.h"

namespace sluice::server::pgwire {

inline constexpr size_t kDeskBufferBytes = size_t{64} << 10;

// A client that has connected to a desk and sent its start-up message.
struct Visitor {
  StartupMessage startup;
  std::string token;  // sent as the password
  std::unique_ptr<Channel> channel;

  // Sends the error and disconnects. For a visitor who has not been handed on.
  void Refuse(const Status& status);
};

// Where processes of the same user connect as to a PostgreSQL server: an abstract Unix socket.
// Belongs to the I/O thread.
class Desk {
 public:
  struct Host {
    std::function<void(Visitor visitor)> enters;
    // A request to cancel what runs on a back end.
    std::function<void(uint32_t process, uint32_t key)> cancels;
  };
  // `name`: libpq's host, starting with '@'. `buffer`: shared by all readers on this thread.
  Desk(boost::asio::io_context& context, std::vector<char>& buffer, std::string name, Host host);
  Status Listen();
  void Close();
  // In libpq's form.
  const std::string& name() const { return name_; }
  static const char* Port();

 private:
  void Accept();

  boost::asio::io_context& context_;
  std::vector<char>& buffer_;
  const std::string name_;
  const std::shared_ptr<const Host> host_;
  boost::asio::local::stream_protocol::acceptor acceptor_;
};

}  // namespace sluice::server::pgwire
