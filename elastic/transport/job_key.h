#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace sluice::elastic {

// How the processes of one job recognise each other.
struct JobKey {
  JobKey() = default;
  JobKey(std::string job_token)
      : token(std::move(job_token)) {}                 // NOLINT: implicit, on one machine
  JobKey(const char* job_token) : token(job_token) {}  // NOLINT: the same

  std::string token;
  // PEM. Both ends of a connection present this certificate and accept no other; empty: on one
  // machine, where nobody else can listen in.
  std::string certificate, private_key;

  bool encrypts() const { return !certificate.empty(); }
};

// For a job whose processes are on several machines: with a key pair of its own, valid for ten
// years.
Result<JobKey> MakeJobKey(std::string token);
// The certificate's subject.
inline constexpr char kJobName[] = "sluice-job";

// Whether who said this token and build belongs to the job. PermissionDenied: a stranger.
// FailedPrecondition: between machines, where each may have an image of another build, a process of
// another build.
Status CheckMember(const JobKey& key, std::string_view token, std::string_view build);

// Of this program: processes of one job have the same build. Empty: it was linked without.
const std::string& BuildId();

}  // namespace sluice::elastic
