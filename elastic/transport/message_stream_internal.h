#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "elastic/transport/connection.h"
#include "elastic/transport/job_key.h"
#include "elastic/transport/socket.h"

namespace google::protobuf {
class MessageLite;
}

namespace sluice::elastic {

// The first byte of a message stream. Neither HTTP/2 nor TLS begins with it, so that both kinds of
// connections come to one address.
inline constexpr char kStreamByte = 'S';

// Messages between two processes of a job, over a connection of their own: what they do thousands
// of times, a call of gRPC's each time would cost more than the message. A frame is a length, a
// kind, and a message or an error; they alternate: a request, its answer. Through a Unix socket and
// without encryption the two ends share memory. One thread.
class MessageStream {
 public:
  using Deadline = std::chrono::steady_clock::time_point;  // max(): none
  // For one attempt to connect: a machine without power answers nothing.
  static constexpr std::chrono::seconds kConnecting{2};

  MessageStream() = default;  // closed
  // Connects to a server of the job, and is admitted. `address`: "HOST:PORT" with a numeric host,
  // "unix:PATH" or "unix-abstract:NAME". `encryption`: of `key`; may be null.
  // PermissionDenied, FailedPrecondition: refused; Unavailable: nobody answers there, or `stop`.
  static Result<MessageStream> Connect(const std::string& address, const JobKey& key,
                                       const Encryption* encryption, Deadline until,
                                       const std::stop_token& stop = {});
  // The other end: admits who opened this socket, whose first byte has not been read yet.
  static Result<MessageStream> Accept(Socket socket, const JobKey& key,
                                      const Encryption* encryption, Deadline until);

  // No connection, or one that has failed.
  bool open() const { return connection_.open() && !broken_; }
  // An error other than ResourceExhausted breaks the stream. ResourceExhausted: the message is too
  // large, and nothing was sent.
  Status Send(const google::protobuf::MessageLite& message, Deadline until);
  Status SendError(const Status& error, Deadline until);
  // The other end's message, or its error. DeadlineExceeded: not yet; the next call continues. Any
  // other failure of the connection breaks the stream.
  Status Receive(google::protobuf::MessageLite* message, Deadline until);
  // See Socket::Duplicate.
  Socket Control() const;

 private:
  // Bytes whose room is kept from frame to frame, unless it is large.
  class Buffer {
   public:
    char* data() { return bytes_.get(); }
    size_t room() const { return room_; }
    // Keeps the first `kept` bytes.
    void Reserve(size_t room, size_t kept);
    void FreeIfLarge();

   private:
    std::unique_ptr<char[]> bytes_;
    size_t room_ = 0;
  };
  enum class Kind : uint32_t { kMessage = 0, kError = 1 };
  // As in a frame, in the order of this machine's bytes: all of a job's processes are of one build.
  struct Header {
    uint32_t length = 0;
    Kind kind = Kind::kMessage;
  };

  Status SendFrame(const google::protobuf::MessageLite& message, Kind kind, Deadline until);
  Status SendBytes(std::span<const char> bytes, Deadline until);
  Status ReceiveFrame(Deadline until);
  Status Broken(const std::string& why);

  Connection connection_;
  size_t most_ = 0;  // bytes of a frame
  Buffer out_, in_;
  size_t received_ = 0;  // bytes of the frame that is being received
  bool broken_ = false;
};

}  // namespace sluice::elastic
