#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <string>

namespace sluice::elastic {

// After a call for a non-blocking socket that has failed.
inline bool MayTryAgain() {
  return errno == EAGAIN || errno == EINTR;
}

// Bytes between TLS and a socket. Records that are written one after the other are sent together:
// each is at most 16 KB.
class TlsWire {
 public:
  explicit TlsWire(int descriptor) : descriptor_(descriptor) {}

  // From the end of the handshake on, bytes are sent by Flush, or when there are many.
  void Collect() { collects_ = true; }
  int Write(const char* bytes, int count) {
    if (!collects_) {
      return static_cast<int>(send(descriptor_, bytes, static_cast<size_t>(count), MSG_NOSIGNAL));
    }
    if (waiting_.size() >= kMostCollected && (!Flush() || !empty())) {
      return -1;
    }
    waiting_.append(bytes, static_cast<size_t>(count));
    return count;
  }
  // False: the connection has failed. Without room, some bytes stay.
  bool Flush() {
    while (!empty()) {
      // OpenSSL's own BIO writes without MSG_NOSIGNAL: a closed peer would end this process.
      const ssize_t sent =
          send(descriptor_, waiting_.data() + sent_, waiting_.size() - sent_, MSG_NOSIGNAL);
      if (sent < 0) {
        return MayTryAgain();
      }
      sent_ += static_cast<size_t>(sent);
    }
    waiting_.clear();
    sent_ = 0;
    return true;
  }
  bool empty() const { return sent_ == waiting_.size(); }
  ssize_t Read(char* bytes, int count) const {
    return recv(descriptor_, bytes, static_cast<size_t>(count), 0);
  }

 private:
  // Three records: the other end decrypts them while the next ones are encrypted.
  static constexpr size_t kMostCollected = 48 << 10;
  const int descriptor_;
  bool collects_ = false;
  std::string waiting_;
  size_t sent_ = 0;  // of waiting_
};

}  // namespace sluice::elastic
