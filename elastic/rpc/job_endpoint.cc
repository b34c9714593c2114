#include "elastic/rpc/job_endpoint.h"

#include <fmt/core.h>

#include <sys/random.h>

namespace sluice::elastic {

Result<std::string> MakeJobToken() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof(bytes), 0) != static_cast<ssize_t>(sizeof(bytes))) {
    return Internal("the system has no random numbers");
  }
  std::string token;
  for (unsigned char byte : bytes) {
    token += fmt::format("{:02x}", byte);
  }
  return token;
}

bool TermFence::Admit(Term term) {
  Term latest = latest_.load();
  while (term > latest && !latest_.compare_exchange_weak(latest, term)) {
  }
  return term >= latest;
}

}  // namespace sluice::elastic
