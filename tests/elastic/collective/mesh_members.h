#pragma once

#include <cstddef>
#include <vector>

#include "elastic/collective/mesh.h"

// The members of a world on this machine.
namespace sluice::elastic {

inline constexpr char kMeshKey[] = "0123456789abcdef0123456789abcdef";

// Of the member of this rank.
inline Mesh::Options MemberOptions(const std::vector<Listener>& listeners, size_t rank) {
  Mesh::Options options;
  options.world = WorldId(7);
  options.rank = Rank::At(rank);
  options.key = kMeshKey;
  for (const Listener& listener : listeners) {
    options.addresses.push_back(listener.address());
  }
  return options;
}

// Where the members of a world listen, by rank.
inline std::vector<Listener> MemberListeners(size_t size,
                                             Listener::Kind kind = Listener::Kind::kUnix) {
  std::vector<Listener> listeners;
  for (size_t rank = 0; rank < size; ++rank) {
    listeners.push_back(Listener::Open(kind, "127.0.0.1").value());
  }
  return listeners;
}

}  // namespace sluice::elastic
