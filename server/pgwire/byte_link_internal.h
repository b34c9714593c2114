#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string_view>

namespace sluice::server::pgwire {

// A session's connection to its back end: a socket to a server, or a server in this process.
// Nothing blocks. Belongs to the I/O thread.
class ByteLink {
 public:
  virtual ~ByteLink() = default;

  // Reads what is there, at most `size` bytes. 0: nothing now. Negative: end of the stream, or an
  // error.
  virtual ssize_t Read(char* bytes, size_t size) = 0;
  // The last Read returned little, so another one would probably return nothing.
  virtual bool drained() const = 0;
  // Sends the bytes, or keeps those that there is no room for. False: the connection is broken.
  virtual bool Write(std::string_view bytes) = 0;
  // Bytes kept; wait for them to be sent before writing more.
  virtual size_t unsent() const = 0;

  // `then` is called once, with false if the connection is broken. One wait at a time.
  virtual void WaitReadable(std::function<void(bool ok)> then) = 0;
  // Waits until everything kept has been sent.
  virtual void WaitSent(std::function<void(bool ok)> then) = 0;
  // Tells the back end that nothing more will be sent; what is kept is not. It may still be read.
  virtual void EndWriting() = 0;
  virtual void Close() = 0;
};

}  // namespace sluice::server::pgwire
