#include "catalog/handed_connection.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace sluice::catalog {
namespace {

Status NotHandedOver(std::string_view why) {
  return Status(Code::kUnavailable, "the connection to PostgreSQL was not handed over")
      .SqlState("08006")
      .Detail(std::string(why));
}

// A message with one descriptor, which must carry at least one byte.
struct DescriptorMessage {
  DescriptorMessage() {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
  }
  char byte = 0;
  iovec part = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header = {};
};

}  // namespace

Status SendDescriptor(int socket, int descriptor) {
  DescriptorMessage message;
  cmsghdr* const carried = CMSG_FIRSTHDR(&message.header);
  carried->cmsg_level = SOL_SOCKET;
  carried->cmsg_type = SCM_RIGHTS;
  carried->cmsg_len = CMSG_LEN(sizeof(descriptor));
  std::memcpy(CMSG_DATA(carried), &descriptor, sizeof(descriptor));
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &message.header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent == 1 ? OkStatus() : NotHandedOver(std::strerror(errno));
}

Result<int> ReceiveDescriptor(int socket) {
  DescriptorMessage message;
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    return NotHandedOver(std::strerror(errno));
  }
  const cmsghdr* const carried = CMSG_FIRSTHDR(&message.header);
  if (got == 0 || carried == nullptr || carried->cmsg_level != SOL_SOCKET ||
      carried->cmsg_type != SCM_RIGHTS || carried->cmsg_len != CMSG_LEN(sizeof(int))) {
    return NotHandedOver("no descriptor has come");
  }
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(carried), sizeof(descriptor));
  return descriptor;
}

}  // namespace sluice::catalog
