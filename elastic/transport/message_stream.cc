#include "elastic/transport/message_stream_internal.h"

#include <google/protobuf/message_lite.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "elastic/transport/message_limits.h"
#include "elastic/transport/shared_rings_internal.h"
#include "elastic/transport/status_codec_internal.h"

namespace sluice::elastic {
namespace {

using Deadline = MessageStream::Deadline;

// In clear, before a TLS handshake.
constexpr std::string_view kOpening = "SLUICE1\n";
static_assert(kOpening.front() == kStreamByte);
constexpr size_t kMaxHelloBytes = 4096;
// Of a Unix socket's address: its other end is on this machine.
constexpr std::string_view kLocalPrefix = "unix";
constexpr size_t kFirstRoom = 16 << 10;
constexpr size_t kMostKept = 4 << 20;

// `memory`: the file of what the other end wants to share; not open: it sends through the socket.
Status ReadOpening(const Socket& socket, Deadline until, Socket* memory) {
  std::array<char, kOpening.size()> bytes{};
  size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t more = ReceiveWithFile(socket, std::span(bytes).subspan(got), memory);
    if (more > 0) {
      got += static_cast<size_t>(more);
    } else if (more == 0 || (errno != EAGAIN && errno != EINTR)) {
      return Unavailable("the other end has closed the connection");
    } else if (!WaitFor(socket.descriptor(), POLLIN, until)) {
      return Unavailable("there was no answer in time");
    }
  }
  return std::string_view(bytes.data(), bytes.size()) == kOpening
             ? Status()
             : InvalidArgument("not a stream of messages");
}

}  // namespace

void MessageStream::Buffer::Reserve(size_t room, size_t kept) {
  if (room <= room_) {
    return;
  }
  std::unique_ptr<char[]> bytes(new char[room]);
  std::copy_n(bytes_.get(), kept, bytes.get());
  bytes_ = std::move(bytes);
  room_ = room;
}

void MessageStream::Buffer::FreeIfLarge() {
  if (room_ > kMostKept) {
    bytes_.reset();
    room_ = 0;
  }
}

Result<MessageStream> MessageStream::Connect(const std::string& address, const JobKey& key,
                                             const Encryption* encryption, Deadline until,
                                             const std::stop_token& stop) {
  ASSIGN_OR_RETURN(Socket socket, ConnectToServer(address));
  const Socket control = Socket::Duplicate(socket.descriptor());
  if (!control.open()) {
    return SystemError("a connection");
  }
  const std::stop_callback end(
      stop, [&control] { static_cast<void>(shutdown(control.descriptor(), SHUT_RDWR)); });
  if (!WaitFor(socket.descriptor(), POLLOUT, until)) {
    return Unavailable("there was no answer in time");
  }
  SharedRings rings;
  if (encryption == nullptr && address.starts_with(kLocalPrefix)) {
    Socket memory;
    Result<SharedRings> made = SharedRings::Make(&memory);
    if (made.ok() && SendWithFile(socket, kOpening, memory)) {
      rings = *std::move(made);
    }
  }
  // A connection that was not established fails here. The first bytes always have room.
  if (!rings.open() && send(socket.descriptor(), kOpening.data(), kOpening.size(), MSG_NOSIGNAL) !=
                           static_cast<ssize_t>(kOpening.size())) {
    return SystemError("connecting");
  }
  MessageStream stream;
  ASSIGN_OR_RETURN(stream.connection_,
                   Connection::Open(std::move(socket), encryption, false, until));
  stream.most_ = kMaxMessageBytes + kEnvelopeBytes;
  HelloProto hello;
  hello.set_token(key.token);
  hello.set_build(BuildId());
  RETURN_IF_ERROR(stream.Send(hello, until));
  const Status admitted = stream.Receive(&hello, until);
  if (admitted.code() == Code::kDeadlineExceeded) {
    return Unavailable("there was no answer in time");
  }
  RETURN_IF_ERROR(admitted);
  if (rings.open() && hello.shares_memory()) {
    stream.connection_.UseMemory(std::move(rings));
  }
  return stream;
}

Result<MessageStream> MessageStream::Accept(Socket socket, const JobKey& key,
                                            const Encryption* encryption, Deadline until) {
  Socket memory;
  RETURN_IF_ERROR(ReadOpening(socket, until, &memory));
  MessageStream stream;
  ASSIGN_OR_RETURN(stream.connection_,
                   Connection::Open(std::move(socket), encryption, true, until));
  stream.most_ = kMaxHelloBytes;  // of somebody who may be a stranger
  HelloProto hello;
  RETURN_IF_ERROR(stream.Receive(&hello, until));
  const Status allowed = CheckMember(key, hello.token(), hello.build());
  if (!allowed.ok()) {
    RETURN_IF_ERROR(stream.SendError(allowed, until));
    return allowed;
  }
  // The file does not arrive where this process may open no further one: then through the socket.
  Result<SharedRings> rings = memory.open() ? SharedRings::Adopt(memory) : SharedRings();
  HelloProto answer;
  answer.set_shares_memory(rings.ok() && rings->open());
  RETURN_IF_ERROR(stream.Send(answer, until));
  if (answer.shares_memory()) {
    stream.connection_.UseMemory(*std::move(rings));
  }
  stream.most_ = kMaxMessageBytes + kEnvelopeBytes;
  return stream;
}

Socket MessageStream::Control() const {
  return Socket::Duplicate(connection_.descriptor());
}

Status MessageStream::Broken(const std::string& why) {
  broken_ = true;
  return Unavailable(why);
}

Status MessageStream::Send(const google::protobuf::MessageLite& message, Deadline until) {
  return SendFrame(message, Kind::kMessage, until);
}

Status MessageStream::SendError(const Status& error, Deadline until) {
  StatusProto proto;
  ToProto(error, &proto);
  return SendFrame(proto, Kind::kError, until);
}

Status MessageStream::SendFrame(const google::protobuf::MessageLite& message, Kind kind,
                                Deadline until) {
  const size_t bytes = message.ByteSizeLong();
  // A worker's exchange has been checked, and may be sent on to a replica.
  if (bytes > size_t{kMaxMessageBytes} + kEnvelopeBytes) {
    return TooLarge("a message", bytes);
  }
  const Header header{static_cast<uint32_t>(bytes), kind};
  out_.Reserve(std::max(sizeof(header) + bytes, kFirstRoom), 0);
  std::memcpy(out_.data(), &header, sizeof(header));
  message.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(out_.data() + sizeof(header)));
  Status status = SendBytes({out_.data(), sizeof(header) + bytes}, until);
  out_.FreeIfLarge();
  return status;
}

Status MessageStream::SendBytes(std::span<const char> bytes, Deadline until) {
  while (!bytes.empty()) {
    const iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
    const ptrdiff_t sent = connection_.Send({&piece, 1});
    if (sent < 0) {
      return Broken("the other end has closed the connection");
    }
    if (sent == 0 && !WaitFor(connection_.descriptor(), connection_.room_event(), until)) {
      return Broken("the other end does not read");
    }
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
  return Status();
}

// All of a frame into in_.
Status MessageStream::ReceiveFrame(Deadline until) {
  Header header;
  for (;;) {
    size_t wanted = sizeof(header);
    if (received_ >= sizeof(header)) {
      std::memcpy(&header, in_.data(), sizeof(header));
      if (header.length > most_) {
        return Broken("a message that is longer than any may be");
      }
      wanted += header.length;
      if (received_ >= wanted) {
        return received_ == wanted ? Status() : Broken("more than an answer was received");
      }
    }
    // Twice what has arrived: a length alone takes no memory.
    in_.Reserve(std::max(std::min(wanted, 2 * received_), kFirstRoom), received_);
    const std::span<char> room(in_.data() + received_, in_.room() - received_);
    const ptrdiff_t got = connection_.Receive(std::as_writable_bytes(room));
    if (got < 0) {
      return Broken("the other end has closed the connection");
    }
    received_ += static_cast<size_t>(got);
    if (got == 0 && !WaitFor(connection_.descriptor(), POLLIN, until)) {
      return Status(Code::kDeadlineExceeded, "there was no answer in time");
    }
  }
}

Status MessageStream::Receive(google::protobuf::MessageLite* message, Deadline until) {
  if (!open()) {
    return Unavailable("the connection is closed");
  }
  RETURN_IF_ERROR(ReceiveFrame(until));
  Header header;
  std::memcpy(&header, in_.data(), sizeof(header));
  const char* const bytes = in_.data() + sizeof(header);
  const auto length = static_cast<int>(header.length);
  received_ = 0;
  if (header.kind == Kind::kMessage) {
    const bool readable = message->ParseFromArray(bytes, length);
    in_.FreeIfLarge();
    return readable ? Status()
                    : InvalidArgument("a message between processes of a job cannot be read");
  }
  StatusProto error;
  if (header.kind != Kind::kError || !error.ParseFromArray(bytes, length) ||
      error.diagnostics().empty()) {
    return Broken("an answer that cannot be read");
  }
  const Status theirs = FromProto(error);
  // That code is ours, for an answer that has not come yet.
  return theirs.code() == Code::kDeadlineExceeded ? Unavailable(theirs.message()) : theirs;
}

}  // namespace sluice::elastic
