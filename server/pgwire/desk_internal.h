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

// Somebody who has come in at a desk and said as whom.
struct Visitor {
  StartupMessage startup;
  std::string token;  // in the place of a password
  std::unique_ptr<Channel> channel;

  // Shows them out. For one who has not been handed on.
  void Refuse(const Status& status);
};

// Where processes of this one's own user connect as to a PostgreSQL server: an abstract Unix
// socket. Belongs to the I/O thread.
class Desk {
 public:
  struct Host {
    std::function<void(Visitor visitor)> enters;
    // Somebody wants ended what runs on a back end.
    std::function<void(uint32_t process, uint32_t key)> cancels;
  };
  // `name`: as libpq's host, behind an '@'. `buffer`: of whoever reads on this thread.
  Desk(boost::asio::io_context& context, std::vector<char>& buffer, std::string name, Host host);
  Status Listen();
  void Close();
  // As libpq has them.
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
