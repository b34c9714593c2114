#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "base/status.h"

namespace sluice::server::pgwire {

// Counts what is held in memory for the sessions of each role: messages that their clients have
// begun to send, and rows on their way from a statement of ours to the database. A role gets no
// more than is left for all others. Belongs to one thread, and outlives its charges.
class RoleBytes {
 public:
  // `most`: bytes of all roles together.
  explicit RoleBytes(size_t most) : most_(most) {}

  // For one purpose of a session; nothing at first.
  class Charge {
   public:
    Charge(RoleBytes& all, std::string role) : all_(all), role_(std::move(role)) {}
    ~Charge() { Drop(); }
    Charge(const Charge&) = delete;
    Charge& operator=(const Charge&) = delete;
    // Counts that many instead. 53200: they are too many, and none are counted.
    Status Set(size_t bytes);
    // Counts that many, if they are fewer.
    void Lower(size_t bytes);

   private:
    void Drop();

    RoleBytes& all_;
    const std::string role_;
    size_t bytes_ = 0;
  };

 private:
  const size_t most_;
  size_t total_ = 0;
  std::map<std::string, size_t> of_role_;  // never 0
};

}  // namespace sluice::server::pgwire
