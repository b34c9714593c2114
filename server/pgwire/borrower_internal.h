#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "server/pgwire/channel_internal.h"

namespace sluice::server::pgwire {

class WireSession;

// The connection of a statement that has borrowed its session's back end; bytes are passed through
// unchanged. Belongs to the I/O thread.
class Borrower final : public std::enable_shared_from_this<Borrower> {
 public:
  // `buffer`: shared by all readers on this thread.
  Borrower(WireSession& session, std::vector<char>& buffer, std::unique_ptr<Channel> channel);

  void Wait();
  void Send(std::string_view bytes);
  bool writing() const { return writing_; }
  void Close();

 private:
  void Read();

  std::vector<char>& buffer_;
  const std::unique_ptr<Channel> channel_;
  WireSession* session_;  // null after Close
  bool reading_ = false;
  bool writing_ = false;
};

}  // namespace sluice::server::pgwire
