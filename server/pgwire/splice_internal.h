#pragma once

#include <memory>
#include <vector>

#include "server/pgwire/channel_internal.h"

namespace sluice::server::pgwire {

// Passes bytes between two connections in both directions, until one of them ends. Reads from one
// only while the other accepts data. Belongs to the I/O thread; lives as long as the connections.
class Splice final : public std::enable_shared_from_this<Splice> {
 public:
  // `buffer`: of whoever reads on this thread. `presence`: is held until the end.
  Splice(std::unique_ptr<Channel> one, std::unique_ptr<Channel> other, std::vector<char>& buffer,
         std::shared_ptr<const void> presence);
  void Start();

 private:
  struct End {
    std::unique_ptr<Channel> channel;
    bool reading = false;
    bool writing = false;
  };
  void Wait(End& from, End& to);
  void Read(End& from, End& to);
  void Close();

  End one_;
  End other_;
  std::vector<char>& buffer_;
  const std::shared_ptr<const void> presence_;
};

}  // namespace sluice::server::pgwire
