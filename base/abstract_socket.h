#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string>

#include "base/status.h"

// Unix sockets with abstract names (unix(7)), between processes of one user. Thread-safe.
namespace sluice {

union AbstractAddress {
  sockaddr generic;
  sockaddr_un local;
};

// The address of the name, and its length. 22023: the name is too long.
Result<socklen_t> MakeAbstractAddress(const std::string& name, AbstractAddress* address);

// Whether the other end of a connected socket is a process of our own user: all users can see an
// abstract name, and any of them can bind it.
bool IsOurUsers(int descriptor);

}  // namespace sluice
