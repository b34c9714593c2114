#pragma once

#include <string>
#include <utility>

#include "base/status.h"

namespace sluice::elastic {

// By which the processes of one job know each other, and nobody else does.
struct JobKey {
  JobKey() = default;
  JobKey(std::string job_token)
      : token(std::move(job_token)) {}                 // NOLINT: implicit, on one machine
  JobKey(const char* job_token) : token(job_token) {}  // NOLINT: the same

  std::string token;
  // PEM. Both ends of a connection show this certificate, and neither takes another one; empty: on
  // one machine nobody else can listen.
  std::string certificate, private_key;

  bool encrypts() const { return !certificate.empty(); }
};

// Of a job whose processes are on several machines: a pair of its own, for ten years.
Result<JobKey> MakeJobKey(std::string token);
// Whom the certificate names.
inline constexpr char kJobName[] = "sluice-job";

// Of this program: processes of one job are of one build. Empty: it was linked without.
const std::string& BuildId();

}  // namespace sluice::elastic
