#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace sluice::catalog {

// The SHA-256 of bytes that are added piece by piece. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  ~Sha256();
  void Add(std::string_view bytes);
  std::string Hex();  // of all; nothing may be added afterwards

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::catalog
