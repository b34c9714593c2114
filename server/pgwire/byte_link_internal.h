#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string_view>

namespace sluice::server::pgwire {

// What a session says to its back end, and hears from it: a socket to a server, or a server in this
// process. Nothing blocks. Belongs to the I/O thread.
class ByteLink {
 public:
  virtual ~ByteLink() = default;

  // Reads what is there, at most `size` bytes. 0: nothing now. Negative: the end, or an error.
  virtual ssize_t Read(char* bytes, size_t size) = 0;
  // The last Read has brought little: another one would be for nothing, mostly.
  virtual bool drained() const = 0;
  // Sends, or keeps what there is no room for. False: the connection is broken.
  virtual bool Write(std::string_view bytes) = 0;
  // Kept, and to be waited for before there is more.
  virtual size_t unsent() const = 0;

  // `then` is called once, with false where the connection is broken. One at a time.
  virtual void WaitReadable(std::function<void(bool ok)> then) = 0;
  // Until everything kept has been sent.
  virtual void WaitSent(std::function<void(bool ok)> then) = 0;
  virtual void Close() = 0;
};

}  // namespace sluice::server::pgwire
