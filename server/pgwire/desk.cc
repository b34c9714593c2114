#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "server/pgwire/desk_internal.h"

namespace sluice::server::pgwire {
namespace {

constexpr size_t kMaxHandshakeBytes = size_t{10} << 10;
constexpr const char* kPort = "5432";  // only part of the name

bool IsThisUser(int descriptor) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == geteuid();
}

// A visitor who has not shown the token yet. Kept alive by what it waits for.
class Handshake final : public std::enable_shared_from_this<Handshake> {
 public:
  Handshake(std::shared_ptr<const Desk::Host> host, std::vector<char>& buffer,
            std::unique_ptr<Channel> channel)
      : host_(std::move(host)), buffer_(buffer) {
    visitor_.channel = std::move(channel);
  }

  void Wait() {
    visitor_.channel->WaitReadable([self = shared_from_this()](bool ok) {
      if (ok) {
        self->Read();
      }
    });
  }

 private:
  void Read() {
    const ssize_t got = visitor_.channel->Read(buffer_.data(), buffer_.size());
    if (got < 0) {
      return;
    }
    held_.append(buffer_.data(), static_cast<size_t>(got));
    if (held_.size() > kMaxHandshakeBytes) {
      return;
    }
    const bool more = (asked_ || TakeStartup()) && (!asked_ || TakeToken());
    if (more) {
      Wait();
    }
  }

  // False: it has ended.
  bool TakeStartup() {
    if (held_.size() < kLengthBytes) {
      return true;
    }
    const size_t length = LoadBigEndian<uint32_t>(held_);
    if (length < 2 * kLengthBytes || length > kMaxHandshakeBytes) {
      return false;
    }
    if (held_.size() < length) {
      return true;
    }
    const std::string body = held_.substr(kLengthBytes, length - kLengthBytes);
    held_.erase(0, length);
    BigEndianReader reader(body);
    if (reader.Take<uint32_t>() == kCancelCode) {
      const uint32_t process = reader.Take<uint32_t>();
      host_->cancels(process, reader.Take<uint32_t>());
      return false;
    }
    Result<StartupMessage> startup = ReadStartup(body);
    if (!startup.ok()) {
      visitor_.Refuse(startup.status());
      return false;
    }
    visitor_.startup = *std::move(startup);
    std::string question;
    AppendAuthentication(question, Authentication::kPassword);
    asked_ = visitor_.channel->Write(question);
    return asked_;
  }

  bool TakeToken() {
    if (held_.size() < kHeaderBytes) {
      return true;
    }
    const size_t length = LoadBigEndian<uint32_t>(std::string_view(held_).substr(1));
    if (length < kLengthBytes || length > kMaxHandshakeBytes) {
      return false;
    }
    if (held_.size() < 1 + length) {
      return true;
    }
    const Result<std::string_view> token =
        ReadPassword(std::string_view(held_).substr(kHeaderBytes, length - kLengthBytes));
    if (held_[0] != 'p' || !token.ok()) {
      visitor_.Refuse(
          Status(Code::kInvalidArgument, "expected password response").SqlState("08P01"));
      return false;
    }
    visitor_.token = *token;
    host_->enters(std::move(visitor_));
    return false;
  }

  const std::shared_ptr<const Desk::Host> host_;
  std::vector<char>& buffer_;
  Visitor visitor_;
  std::string held_;
  bool asked_ = false;  // for the token
};

}  // namespace

void Visitor::Refuse(const Status& status) {
  std::string refusal;
  AppendError(refusal, status, {}, 0, "FATAL");
  channel->Write(refusal);
  channel->Close();
}

Desk::Desk(boost::asio::io_context& context, std::vector<char>& buffer, std::string name, Host host)
    : context_(context),
      buffer_(buffer),
      name_(std::move(name)),
      host_(std::make_shared<const Host>(std::move(host))),
      acceptor_(context) {}

const char* Desk::Port() {
  return kPort;
}

Status Desk::Listen() {
  // libpq connects to host/.s.PGSQL.port; '@' stands for the NUL of an abstract name.
  std::string path = fmt::format("{}/.s.PGSQL.{}", name_, kPort);
  path[0] = '\0';
  boost::system::error_code error;
  const boost::asio::local::stream_protocol::endpoint endpoint(path);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) {
    acceptor_.bind(endpoint, error);
  }
  if (!error) {
    acceptor_.listen(boost::asio::socket_base::max_listen_connections, error);
  }
  if (error) {
    return Unavailable(fmt::format("cannot listen on {}: {}", name_, error.message()));
  }
  ReadySockets::WakeBy(context_, acceptor_.native_handle());
  Accept();
  return OkStatus();
}

void Desk::Accept() {
  acceptor_.async_accept([this](const boost::system::error_code& error,
                                boost::asio::local::stream_protocol::socket socket) {
    if (!acceptor_.is_open()) {
      return;
    }
    boost::system::error_code ignored;
    if (!error && IsThisUser(socket.native_handle())) {
      std::make_shared<Handshake>(host_, buffer_,
                                  std::make_unique<Channel>(context_, socket.release(ignored)))
          ->Wait();
    }
    Accept();
  });
}

void Desk::Close() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
}

}  // namespace sluice::server::pgwire
