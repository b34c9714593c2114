#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "base/status.h"

namespace sluice::server::pgwire {

// Counts the messages that clients have begun to send, and whose rest is awaited, by role. Of the
// memory for them a role gets no more than is left for all others. Belongs to one thread, and
// outlives its charges.
class UnfinishedMessages {
 public:
  // `most`: bytes of all of them together.
  explicit UnfinishedMessages(size_t most) : most_(most) {}

  // One session's; nothing at first.
  class Charge {
   public:
    Charge(UnfinishedMessages& all, std::string role) : all_(all), role_(std::move(role)) {}
    ~Charge() { Drop(); }
    Charge(const Charge&) = delete;
    Charge& operator=(const Charge&) = delete;
    // Counts that many instead. 53200: they are too many, and none are counted.
    Status Set(size_t bytes);

   private:
    void Drop();

    UnfinishedMessages& all_;
    const std::string role_;
    size_t bytes_ = 0;
  };

 private:
  const size_t most_;
  size_t total_ = 0;
  std::map<std::string, size_t> of_role_;  // never 0
};

}  // namespace sluice::server::pgwire
