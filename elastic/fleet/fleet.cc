#include "elastic/fleet/fleet.h"

#include <fmt/core.h>

namespace sluice::elastic {
namespace {

// Numbered as by the kernel, shells and Kubernetes.
constexpr int kCannotExecute = 126;
constexpr int kNotFound = 127;
constexpr int kBusError = 135;
constexpr int kKilled = 137;
constexpr int kTerminated = 143;
constexpr int kInterrupted = 130;

}  // namespace

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kMaster:
      return "master";
    case Role::kWorker:
      return "worker";
    case Role::kParameterServer:
      return "ps";
  }
  return "unknown";
}

std::string WorkerName(std::string_view job, uint64_t number) {
  return fmt::format("{}-worker-{}", job, number);
}

std::string ServerName(std::string_view job, ServerId server) {
  return fmt::format("{}-ps-{}", job, server);
}

ExitClass ClassifyExit(int exit_code, bool out_of_memory) {
  if (out_of_memory) {
    return ExitClass::kOutOfMemory;
  }
  switch (exit_code) {
    case 0:
      return ExitClass::kOk;
    case kKilled:
    case kTerminated:
    case kInterrupted:
      return ExitClass::kPreempted;
    case kOutOfMemoryExit:
      return ExitClass::kOutOfMemory;
    case kCannotExecute:
    case kNotFound:
      return ExitClass::kConfiguration;
    case kBusError:
      return ExitClass::kHardware;
    default:
      return ExitClass::kApplication;
  }
}

}  // namespace sluice::elastic
