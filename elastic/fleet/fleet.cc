#include "elastic/fleet/fleet.h"

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
